"""A CSV is read however it was saved, its columns are guessed, and every row is either ready or bad for a reason."""

import csv
import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchboard.dashboard.spreadsheet import (
    BadRow,
    Composed,
    Mapping,
    ReadyRow,
    Sheet,
    SheetError,
    compose,
    guess,
    read,
)
from switchboard.dashboard.spreadsheet.cells import looks_like_number, plain_number

DANA, NOAM = "972509876543", "972501234567"
HEBREW = "טלפון,הודעה\r\n050-987-6543,שלום לך\r\n"
TO_AND_TEXT = Mapping(to=0, text=1)


def sheet(text: str) -> Sheet:
    return read(text.encode())


def refusal(raw: bytes, **limits: int) -> tuple[str, dict[str, object]]:
    with pytest.raises(SheetError) as caught:
        read(raw, **limits)
    return caught.value.code, caught.value.details


def composed(text: str, template: str | None = None, mapping: Mapping = TO_AND_TEXT, max_text: int = 100) -> Composed:
    return compose(sheet(text), mapping, template, "IL", max_text)


# Reading: encodings


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1255"])
def test_hebrew_is_read_however_it_was_saved(encoding: str) -> None:
    found = read(HEBREW.encode(encoding))
    assert found.columns == ("טלפון", "הודעה")
    assert found.rows == (("050-987-6543", "שלום לך"),)
    assert found.encoding == encoding.removesuffix("-sig")


@pytest.mark.parametrize("bom_and_order", [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")])
def test_unicode_text_of_either_byte_order_is_read(bom_and_order: tuple[bytes, str]) -> None:
    bom, order = bom_and_order
    assert read(bom + HEBREW.replace(",", "\t").encode(order)).rows == (("050-987-6543", "שלום לך"),)


@pytest.mark.parametrize("name", ["René", "créée", "Müller", "5 €", "“Zoë”"])
def test_accents_of_western_windows_do_not_become_hebrew_letters(name: str) -> None:
    found = read(f"phone,name\n{DANA},{name}\n".encode("cp1252"))
    assert (found.rows[0][1], found.encoding) == (name, "cp1252")


def test_what_fits_no_windows_page_is_read_byte_by_byte() -> None:
    assert read(b"phone,name\n972509876543,\x81\xfc\n").encoding == "latin-1"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"PK\x03\x04\x14\x00\x06\x00", "xlsx"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "xls"),
        (b"%PDF-1.7\n", "pdf"),
        (b"to,text\x00\n", "binary"),
        ("to,text\n1,2".encode("utf-16-le"), "binary"),
        (b"\xff\xfe\x00", "binary"),
        (b"[1]," * 100_000, "unknown"),
    ],
)
def test_a_file_that_is_no_text_is_refused_by_its_kind(raw: bytes, kind: str) -> None:
    assert refusal(raw) == ("not_text", {"kind": kind})


# Reading: delimiters, quotes, lines


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_usual_delimiter_and_line_end_is_understood(delimiter: str, end: str) -> None:
    lines = [["phone", "text"], [DANA, '"Hi, a; b | c\td"'], [NOAM, '"two\r\nlines ""quoted"""']]
    found = sheet(end.join(delimiter.join(line) for line in lines))
    assert found.delimiter == delimiter
    assert found.rows == ((DANA, "Hi, a; b | c\td"), (NOAM, 'two\r\nlines "quoted"'))


def test_a_delimiter_that_is_only_within_texts_is_not_taken_for_it() -> None:
    text = f"phone;text\n{DANA};Hi, Dana, it is here\n{NOAM};Hi, Noam, it is there\n"
    assert sheet(text).delimiter == ";"


@pytest.mark.parametrize("row", [f'{DANA};"Hi, Dana"', f'"{DANA}";"Hi, Dana"'])
def test_nor_is_one_that_is_within_quotes_in_every_row(row: str) -> None:
    assert sheet(f"{row}\n{row}\n").rows == ((DANA, "Hi, Dana"),) * 2


def test_not_even_if_a_row_has_a_cell_too_many() -> None:
    row = f'"{DANA}";"Hi, Dana"'
    assert sheet(f'{row}\n{row}\n{row};"x"\n').delimiter == ";"


def test_a_single_column_needs_no_delimiter() -> None:
    assert sheet(f"phone\n{DANA}\n{NOAM}\n").rows == ((DANA,), (NOAM,))


def test_excels_hint_about_the_delimiter_is_followed_and_is_no_row() -> None:
    found = sheet(f"sep=;\r\nphone;text,more\r\n{DANA};a,b\r\n")
    assert (found.columns, found.rows, found.lines) == (("phone", "text,more"), ((DANA, "a,b"),), (2,))


def test_lines_are_numbered_as_a_spreadsheet_shows_them() -> None:
    found = sheet(f'\nphone,text\n\n{DANA},"one\ntwo\nthree"\n,,\n  ,\n{NOAM},b\n')
    assert found.lines == (4, 7)


def test_a_quote_that_never_closes_is_refused_instead_of_swallowing_the_rows_behind_it() -> None:
    rest = "".join(f"{DANA},a\n" for _ in range(30))
    assert refusal(f'phone,text\n{DANA},a\n{DANA},"a\n{rest}'.encode()) == ("open_quote", {"line": 3})
    assert refusal(f'phone,text\n{DANA},"{rest * 1_000}'.encode()) == ("open_quote", {"line": 2})


# Reading: header and columns


@pytest.mark.parametrize(
    "first",
    [DANA, "+972 50-987-6543", "050-987-6543", "(050) 987 6543", '"=""0509876543"""', "'0509876543", "9.725E+11"],
)
def test_a_first_row_with_a_number_is_no_header(first: str) -> None:
    found = sheet(f"Dana,{first},hello\nNoam,{NOAM},hello\n")
    assert (found.has_header, found.columns, len(found.rows), found.lines) == (False, ("1", "2", "3"), 2, (1, 2))


def test_a_first_row_without_any_number_is_the_header_even_with_a_year_or_a_date() -> None:
    found = sheet(f"phone,2026,2026-01-15\n{DANA},a,b\n")
    assert (found.has_header, found.columns, found.lines) == (True, ("phone", "2026", "2026-01-15"), (2,))


def test_columns_without_a_name_are_numbered_and_none_has_the_name_of_another() -> None:
    found = sheet(f" phone ,,Name,name,NAME,2\n{DANA},a,b,c,d,e\n")
    assert found.columns == ("phone", "2", "Name", "name (2)", "NAME (3)", "2 (2)")


def test_empty_columns_at_the_end_are_dropped_and_those_with_a_name_or_a_value_kept() -> None:
    assert sheet(f"phone,text,,,\n{DANA},a,,,\n").columns == ("phone", "text")
    assert sheet(f"phone,text,note,,\n{DANA},a,,,\n").columns == ("phone", "text", "note")
    assert sheet(f"phone,text,,,\n{DANA},a,,b,\n").columns == ("phone", "text", "3", "4")


def test_short_rows_are_filled_up_and_longer_ones_marked() -> None:
    found = sheet(f"phone,text,note\n{DANA}\n{DANA},Hi, Dana, how are you\n{DANA},a,b,,,\n")
    assert found.rows == ((DANA, "", ""), (DANA, "Hi", " Dana"), (DANA, "a", "b"))
    assert found.overlong == {3}


def test_without_a_header_the_usual_width_counts() -> None:
    found = sheet(f"{DANA}\n{DANA},a\n{DANA},b\n{DANA},Hi, Dana\n")
    assert (found.columns, found.overlong) == (("1", "2"), frozenset({4}))


# Reading: refusals


@pytest.mark.parametrize("raw", [b"", b"\xef\xbb\xbf", b" \r\n\n", b"phone,text\n", b"phone,text\n,\n"])
def test_a_file_without_a_row_is_empty(raw: bytes) -> None:
    assert refusal(raw) == ("empty", {})


def test_a_file_with_nothing_in_its_cells_has_no_columns() -> None:
    assert refusal(b",,,\n,,,\n") == ("no_columns", {})


def test_a_file_of_too_many_rows_columns_or_bytes_is_refused_with_the_limit() -> None:
    three = b"phone\n" + b"972509876543\n" * 3
    assert len(read(three, most_rows=3).rows) == 3
    assert refusal(three, most_rows=2) == ("too_many_rows", {"most": 2})
    assert refusal(b"972509876543\n" * 3, most_rows=2) == ("too_many_rows", {"most": 2})
    assert refusal(three, most_bytes=len(three) - 1) == ("too_large", {"most": len(three) - 1})
    assert refusal(b"a," * 256 + b"a\n") == ("too_many_columns", {"most": 256})
    assert sheet(f"phone{',' * 16_000}\n{DANA}{',' * 16_000}\n").columns == ("phone",)


# Guessing


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("phone,message,reference", "0509876543,hi,17", Mapping(0, 1, 2)),
        ("Order ID,Phone Number,Body", "10025,050-9876543,hi", Mapping(1, 2, 0)),
        ("שם,טלפון נייד,הודעה", "דנה,050-9876543,שלום", Mapping(1, 2, None)),
        ("מספר הזמנה,מספר,טקסט", "10025,050-9876543,שלום", Mapping(1, 2, 0)),
        ("first name,to,text", "Dana,0509876543,hi", Mapping(1, 2, None)),
        ("Home phone,Mobile", "03-6123456,0509876543", Mapping(1, None, None)),
        ("phoneNumber,message_text,order_ref", "0509876543,hi,17", Mapping(0, 1, 2)),
        ("Phone model,Contact,Text", "iPhone,0509876543,hi", Mapping(1, 2, None)),
        ("invoice,date,who", "1234567,2026-01-15,972509876543", Mapping(2, None, 0)),
        ("phone,order date,הטקסט", "0509876543,yesterday,hi", Mapping(0, 2, None)),
        ("name,remark", "Dana,hi", Mapping(None, None, None)),
    ],
)
def test_columns_are_guessed_by_their_names_and_what_is_in_them(header: str, row: str, expected: Mapping) -> None:
    assert guess(sheet(f"{header}\n{row}\n{row}\n"), "IL") == expected


def test_without_a_header_the_numbers_and_the_longest_texts_tell() -> None:
    rows = [("Dana Levi", DANA, "10025", "Your order is on its way"), ("Noam", NOAM, "10026", "It waits for you there")]
    found = sheet("\n".join(",".join(row) for row in rows))
    assert guess(found, None) == Mapping(1, 3, None)


def test_a_column_named_for_phones_is_guessed_even_when_its_numbers_lack_a_country() -> None:
    assert guess(sheet("name,phone\nDana,050-9876543\n"), None).to == 1


def test_a_column_of_which_only_few_cells_are_numbers_is_not_guessed() -> None:
    rows = "".join(f"x,{cell}\n" for cell in (DANA, "a", "b"))
    assert guess(sheet(f"a,b\n{rows}"), "IL").to is None


# Composing


def test_good_rows_carry_whole_numbers_and_texts_and_the_line_they_came_from() -> None:
    found = composed(f"phone,text,ref\n050-987-6543, Hi \n\n+{NOAM},two\r\nx,y\n", mapping=Mapping(0, 1, 2))
    assert found.good == (ReadyRow(2, DANA, "Hi", None), ReadyRow(4, NOAM, "two", None))
    assert found.bad == (BadRow(5, "to", "not_a_number", "x"),)
    with_reference = composed(f'phone,text,ref\n{DANA},"a\r\nb", 17 \n', mapping=Mapping(0, 1, 2))
    assert with_reference.good == (ReadyRow(2, DANA, "a\nb", "17"),)


@pytest.mark.parametrize(
    "cell", ["'0509876543", '"=""0509876543"""', "972509876543.0", "509876543", "\u200f0509876543\u200e"]
)
def test_numbers_that_a_spreadsheet_has_mangled_are_understood(cell: str) -> None:
    assert [row.to for row in composed(f"phone,text\n{cell},a\n").good] == [DANA]


@pytest.mark.parametrize("cell", ["", "n/a", "9.72509E+11", "12", "050-987-6543 / 052-1234567"])
def test_what_is_no_number_is_shown_as_it_is(cell: str) -> None:
    assert composed(f"phone,text\n{cell},a\n").bad == (BadRow(2, "to", "not_a_number", cell),)


def test_a_long_cell_is_shown_by_its_beginning() -> None:
    shown = composed(f"phone,text\n{'x' * 500},a\n{DANA},a\n").bad[0].shown
    assert (len(shown), shown[-1]) == (60, "…")


@pytest.mark.parametrize(
    ("cells", "bad"),
    [
        ('"  "', BadRow(2, "text", "empty_text")),
        ("x" * 101, BadRow(2, "text", "text_too_long", "101")),
        ("a," + "r" * 201, BadRow(2, "reference", "reference_too_long", "201")),
        ("Hi, Dana, hello", BadRow(2, "row", "extra_cells", f"{DANA}, Hi, Dana")),
    ],
)
def test_a_row_that_can_not_be_sent_says_why(cells: str, bad: BadRow) -> None:
    found = composed(f"phone,text,ref\n{DANA},{cells}\n{DANA},{'x' * 100},{'r' * 200}\n", mapping=Mapping(0, 1, 2))
    assert found.bad == (bad,)
    assert len(found.good) == 1


def test_the_same_to_the_same_recipient_is_said_once() -> None:
    found = composed(f"phone,text\n{DANA},a\n{DANA},b\n{NOAM},a\n050-9876543,a \n{DANA},a\n")
    assert [row.index for row in found.good] == [2, 3, 4]
    assert found.bad == (BadRow(5, "row", "duplicate", "2"), BadRow(6, "row", "duplicate", "2"))


# Templates


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Hi {name}!", "Hi Dana!"),
        ("Hi { NAME }, {order  no} {Name}", "Hi Dana, 17 Dana"),
        ("{{name}} {name} }{{", "{name} Dana }{"),
        ("one\r\ntwo", "one\ntwo"),
        ("{curly}", "{name}"),
    ],
)
def test_a_template_is_filled_with_the_row(template: str, text: str) -> None:
    found = composed(f"phone,Name,Order No,curly\n{DANA}, Dana ,17,{{name}}\n", template, Mapping(to=0))
    assert found.good == (ReadyRow(2, DANA, text, None),)


def test_columns_without_names_are_called_by_their_number() -> None:
    assert composed(f"{DANA},Dana\n", "Hi {2}").good[0].text == "Hi Dana"


@pytest.mark.parametrize(
    ("template", "name"), [("Hi {nmae}", "nmae"), ("Hi {}", ""), ("Hi {name", "{name"), ("{{{", "{")]
)
def test_a_placeholder_that_no_column_has_is_an_error_of_the_template(template: str, name: str) -> None:
    with pytest.raises(SheetError) as caught:
        composed(f"phone,name\n{DANA},Dana\n", template)
    assert (caught.value.code, caught.value.details) == ("unknown_placeholder", {"name": name})


def test_a_row_without_a_value_that_the_template_needs_is_bad() -> None:
    found = composed(f"phone,Name,unused\n{DANA}, ,\n{NOAM},Noam,\n", "Hi {name}")
    assert found.bad == (BadRow(2, "text", "empty_value", "Name"),)
    assert [row.text for row in found.good] == ["Hi Noam"]


def test_a_text_is_measured_after_it_is_filled_in() -> None:
    assert composed(f"phone,name\n{DANA},{'x' * 98}\n", "Hi {name}").bad == (BadRow(2, "text", "text_too_long", "101"),)


@pytest.mark.parametrize(
    ("mapping", "template", "field"),
    [
        (Mapping(text=1), None, "to"),
        (Mapping(to=0), None, "text"),
        (Mapping(to=2), "hi", "to"),
        (Mapping(to=0, text=-1), None, "text"),
        (Mapping(to=0, text=1, reference=7), None, "reference"),
    ],
)
def test_a_part_without_its_column_is_asked_for(mapping: Mapping, template: str | None, field: str) -> None:
    with pytest.raises(SheetError) as caught:
        composed(f"phone,text\n{DANA},a\n", template, mapping)
    assert (caught.value.code, caught.value.details) == ("not_mapped", {"field": field})


# Anything at all

PIECES = st.sampled_from(
    [
        b",",
        b";",
        b"\t",
        b"|",
        b'"',
        b'""',
        b"\n",
        b"\r\n",
        b"\r",
        b"sep=;\n",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\x00",
        b"\xe9",
    ]
    + [
        text.encode()
        for text in ("phone", "text", "{phone}", "050-9876543", DANA, "0", "٥", "²", "שלום", '="1"', "'", "1.0")
    ]
)


@given(st.binary(max_size=300) | st.lists(PIECES, max_size=40).map(b"".join), st.sampled_from(["IL", "US", None]))
def test_no_bytes_raise_anything_but_a_sheet_error(raw: bytes, country: str | None) -> None:
    try:
        found = read(raw)
    except SheetError:
        return
    assert {len(row) for row in found.rows} == {len(found.columns)}
    assert len(found.rows) == len(found.lines)
    assert len({name.casefold() for name in found.columns}) == len(found.columns)
    guessed = guess(found, country)
    done = compose(found, Mapping(to=guessed.to or 0, reference=guessed.reference), "hi", country, 100)
    assert sorted([row.index for row in done.good] + [row.index for row in done.bad]) == list(found.lines)


@given(st.text(max_size=30), st.text(max_size=40))
def test_no_template_and_no_cell_raise_anything_but_a_sheet_error(template: str, cell: str) -> None:
    made = Sheet(("a", "b"), ((cell, cell),), (2,), has_header=True, encoding="utf-8", delimiter=",")
    looks_like_number(cell)
    with suppress(SheetError):
        compose(made, Mapping(to=0), template, "IL", 50)


CELL = st.text(st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from('\n\r",;|\t'), max_size=12)


@given(
    st.integers(2, 5).flatmap(
        lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), min_size=1, max_size=8)
    ),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_pythons_csv_module_writes_is_read_back(
    rows: list[list[str]], delimiter: str, end: str, encoding: str
) -> None:
    rows = [[DANA, *row, "last"] for row in rows]
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    found = read(written.getvalue().encode(encoding))
    assert (found.delimiter, found.has_header) == (delimiter, False)
    assert found.rows == tuple(map(tuple, rows))


PLAIN = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=",;|"), max_size=12)


@given(st.lists(st.tuples(PLAIN, PLAIN), min_size=1, max_size=8), st.sampled_from([",", ";", "\t", "|"]))
def test_so_is_what_it_writes_with_as_few_quotes_as_possible(rows: list[tuple[str, str]], delimiter: str) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter).writerows(
        [("phone", "a", f"b{delimiter}"), *((DANA, *row) for row in rows)]
    )
    found = read(written.getvalue().encode())
    assert found.columns == ("phone", "a", f"b{delimiter}".strip())
    assert [tuple(map(str.strip, row)) for row in found.rows] == [(DANA, a.strip(), b.strip()) for a, b in rows]


@pytest.mark.parametrize(
    ("cell", "number"),
    [("97250.0", "97250"), ("050.987.6543", "050.987.6543"), ("4.0", "4.0"), (' ="050" ', "050"), ("'050", "050")],
)
def test_only_a_fraction_of_nothing_is_taken_off_a_number(cell: str, number: str) -> None:
    assert plain_number(cell) == number


# Many rows


def test_ten_thousand_rows_are_all_composed() -> None:
    rows = "".join(f"05{number:08},Name {number},{number}\n" for number in range(10_000))
    found = sheet(f"phone,name,order\n{rows}")
    done = compose(found, guess(found, "IL"), "Hi {name}, your order {order} is here", "IL", 4_095)
    assert len(done.good) == 10_000


def test_a_text_far_longer_than_any_message_is_refused_before_any_row() -> None:
    with pytest.raises(SheetError) as caught:
        composed(f"phone,name\n{DANA},Dana\n", template="{name}" * 100, mapping=Mapping(to=0), max_text=100)
    assert (caught.value.code, caught.value.details) == ("template_too_long", {"most": 100})
