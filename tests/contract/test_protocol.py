"""The golden examples and the schemas of `protocol/` agree. A worker in any language can run the same checks.

An example's name is `<schema>.<case>.json`, and a case has no dot in it.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from standardwebhooks import Webhook

PROTOCOL = Path(__file__).parents[2] / "protocol"
SCHEMAS = sorted(path.stem for path in (PROTOCOL / "schemas").glob("*.json"))
VALID = sorted((PROTOCOL / "examples").glob("*.*.json"))
INVALID = sorted((PROTOCOL / "examples" / "invalid").glob("*.json"))
BODY_LIMIT = 256 * 1024


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def schema_of(example: Path) -> str:
    return example.stem.rpartition(".")[0]


def schema(name: str) -> Any:
    return load(PROTOCOL / "schemas" / f"{name}.json")


def validator(name: str) -> Draft202012Validator:
    files = (PROTOCOL / "schemas").rglob("*.json")
    registry: Registry[Any] = Registry().with_resources(
        (contents["$id"], Resource.from_contents(contents)) for contents in map(load, files)
    )
    return Draft202012Validator(schema(name), registry=registry)


def faults(name: str, document: Any) -> dict[str, str]:
    """Where the document is wrong, as JSON pointers, and how."""
    return {
        "".join(f"/{step}" for step in error.absolute_path): error.message
        for error in validator(name).iter_errors(document)
    }


@pytest.mark.parametrize("path", sorted((PROTOCOL / "schemas").rglob("*.json")), ids=lambda path: path.stem)
def test_a_schema_is_itself_valid(path: Path) -> None:
    Draft202012Validator.check_schema(load(path))


@pytest.mark.parametrize("example", VALID, ids=lambda path: path.stem)
def test_a_golden_example_is_valid(example: Path) -> None:
    assert faults(schema_of(example), load(example)) == {}


@pytest.mark.parametrize("example", INVALID, ids=lambda path: path.stem)
def test_an_invalid_example_is_refused_for_the_one_reason_it_names(example: Path) -> None:
    case = load(example)
    assert set(case) == {"wrong", "at", "document"}
    assert list(faults(schema_of(example), case["document"])) == [case["at"]], case["wrong"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_has_examples_of_both_kinds(name: str) -> None:
    assert sum(schema_of(example) == name for example in VALID) >= 2
    assert sum(schema_of(example) == name for example in INVALID) >= 2


def test_every_example_belongs_to_a_schema() -> None:
    assert {schema_of(example) for example in VALID + INVALID} == set(SCHEMAS)


def test_every_known_event_has_examples_of_both_kinds() -> None:
    known = {rule["if"]["properties"]["type"]["const"] for rule in schema("event")["allOf"]}
    valid = {load(example)["type"] for example in VALID if schema_of(example) == "event"}
    invalid = {load(example)["document"].get("type") for example in INVALID if schema_of(example) == "event"}
    assert known < valid, "and one example of a type nobody knows yet"
    assert known < invalid


def test_every_class_of_failure_has_an_example() -> None:
    known = set(load(PROTOCOL / "schemas" / "shared" / "types.json")["$defs"]["failureClass"]["enum"])
    assert {load(example)["class"] for example in VALID if schema_of(example) == "nack.request"} == known


@pytest.mark.parametrize("name", [name for name in SCHEMAS if name != "error"])
def test_a_field_nobody_agreed_on_is_refused(name: str) -> None:
    for example in VALID:
        if schema_of(example) == name:
            assert "" in faults(name, load(example) | {"surprise": 1}), example.name


def test_the_longest_message_fits_a_body_in_any_alphabet() -> None:
    longest = load(PROTOCOL / "examples" / "claim.response.first-attempt.json")
    longest["message"]["text"] = "👋" * 4095
    assert faults("claim.response", longest) == {}
    assert len(json.dumps(longest).encode()) < BODY_LIMIT


def test_the_golden_signature_is_reproduced() -> None:
    vector = load(PROTOCOL / "examples" / "signature.json")
    moment = datetime.fromtimestamp(vector["timestamp"], UTC)
    assert Webhook(vector["secret"]).sign(vector["id"], moment, vector["body"]) == vector["signature"]
    assert faults("event", json.loads(vector["body"])) == {}


def test_the_readme_works_through_the_golden_signature() -> None:
    readme = (PROTOCOL / "README.md").read_text(encoding="utf-8")
    for value in load(PROTOCOL / "examples" / "signature.json").values():
        assert str(value) in readme
