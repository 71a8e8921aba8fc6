"""Texts that come back to us from a browser and must be ours: signed, each for one purpose only."""

import base64
import hashlib
import hmac


class Signer:
    """Made from the installation's secret. What is signed for one purpose is worth nothing for another."""

    def __init__(self, secret: str | bytes) -> None:
        self._secret = secret.encode() if isinstance(secret, str) else secret
        if not self._secret:
            raise ValueError("the secret to sign with is empty")

    def sign(self, purpose: str, value: str) -> str:
        """The value (readable by whoever decodes it) and its signature, fit for a URL and a cookie."""
        text = _encode(value.encode())
        return f"{text}.{self.mark(purpose, text)}"

    def open(self, purpose: str, signed: str) -> str | None:
        """The value that was signed for this purpose; None if it was not, or not by us."""
        text, _, mark = signed.rpartition(".")
        if not self.is_same(self.mark(purpose, text), mark):
            return None
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()

    def mark(self, purpose: str, value: str) -> str:
        """The signature alone: it tells nothing of the value."""
        return _encode(hmac.new(self._secret, f"{purpose}\0{value}".encode(errors="replace"), hashlib.sha256).digest())

    @staticmethod
    def is_same(mark: str, given: str) -> bool:
        """In constant time, whatever a stranger sends."""
        return hmac.compare_digest(mark.encode(), given.encode(errors="replace"))


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
