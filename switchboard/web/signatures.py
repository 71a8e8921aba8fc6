"""Who a request is from, by the Standard Webhooks convention: each worker signs with a secret of its own.

Not for API keys, and not for what a signer may do: this only proves that the holder of a secret wrote a body.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime

from standardwebhooks import Webhook, WebhookVerificationError

from switchboard.domain.errors import Unauthorized


def worker_secret(master: str, session_id: str) -> str:
    """The secret of one session's worker: derived, so it is kept nowhere and tells nothing of the others."""
    if not master:
        raise ValueError("the master secret is empty")
    digest = hmac.new(master.encode(), b"worker:" + session_id.encode(), hashlib.sha256).digest()
    return "whsec_" + base64.b64encode(digest).decode()


def sign(secret: str, body: bytes, *, message_id: str, timestamp: int) -> dict[str, str]:
    """The three headers that prove `body` is from the holder of `secret`. `timestamp` is in seconds."""
    moment = datetime.fromtimestamp(timestamp, UTC)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": Webhook(secret).sign(message_id, moment, body.decode()),
    }


def verify(secret: str, headers: Mapping[str, str], body: bytes) -> None:
    """Raise `Unauthorized` unless `headers` sign exactly these bytes, and no more than five minutes ago."""
    webhook = Webhook(secret)
    try:
        webhook.verify(body, dict(headers), json_parse=False)
    except WebhookVerificationError as refusal:
        raise Unauthorized(f"The request is not signed by this worker: {refusal}.") from refusal
    except ValueError as malformed:
        # What the package lets escape on a header it can't split, broken base64, or a body that is not UTF-8.
        raise Unauthorized("The request is not signed by this worker: malformed signature.") from malformed
