"""QR codes as pictures: files for callers of the API, and what a page draws in itself."""

import io

import segno


def image(text: str, kind: str) -> bytes:
    """`kind` is svg or png."""
    out = io.BytesIO()
    _code(text).save(out, kind=kind, scale=8, border=4)
    return out.getvalue()


def inline_svg(text: str) -> str:
    """An element as large as its place allows. Nothing of the text itself is in it."""
    return _code(text).svg_inline(border=2, omitsize=True, svgclass=None, lineclass=None)


def _code(text: str) -> segno.QRCode:
    return segno.make_qr(text, error="l")
