"""Identifiers. A message's WhatsApp id follows from its own id, so no attempt can ever use another one."""

import re
import secrets

_MESSAGE_ID = re.compile(r"[0-9a-f]{18}\Z")
_BATCH_ID = re.compile(r"batch_[0-9a-f]{18}\Z")
_WHATSAPP_ID = re.compile(r"3EB0[0-9A-F]{18}\Z")
_PROXY_ID = re.compile(r"proxy_[0-9]{1,12}\Z")
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


def new_message_id() -> str:
    """72 random bits: 10,000 ids made in one millisecond still never meet."""
    return secrets.token_hex(9)


def new_batch_id() -> str:
    return "batch_" + secrets.token_hex(9)


def whatsapp_id(message_id: str) -> str:
    """The id the recipient's phone tells duplicates by, in the shape Baileys itself uses."""
    return "3EB0" + message_id.upper()


def message_id_of(whatsapp: str) -> str | None:
    """The message behind a WhatsApp id, or None when the id is not one of ours."""
    return whatsapp[4:].lower() if _WHATSAPP_ID.match(whatsapp) else None


def is_message_id(text: str) -> bool:
    return _MESSAGE_ID.match(text) is not None


def is_batch_id(text: str) -> bool:
    return _BATCH_ID.match(text) is not None


def is_session_id(text: str) -> bool:
    return _SESSION_ID.match(text) is not None


def is_proxy_id(text: str) -> bool:
    return _PROXY_ID.match(text) is not None


def natural(name: str) -> tuple[list[str | int], str]:
    """For sorting: worker_2 before worker_10. Texts and numbers alternate, so like is only compared with like."""
    parts = re.split(r"([0-9]+)", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], name
