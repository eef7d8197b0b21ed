"""Is this webhook ours? Signatures after the Standard Webhooks specification, checked by its reference library."""

import binascii
from collections.abc import Mapping, Sequence

import msgspec
from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError

from paceline.client.answers_events import Event, Told
from paceline.client.errors import BadSignature, Misused


def verify_webhook(secret: str | Sequence[str], headers: Mapping[str, str], body: bytes | str) -> Event:
    """The event, if it is signed with the secret (or one of several, while they are rotated) and at most five minutes
    old. `body` must be the bytes as they came: JSON that was read and written again has another signature."""
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets:
        raise Misused("give the secret of the webhook, whsec_…")
    given = {name.lower(): value for name, value in headers.items()}
    fault = ""
    for one in secrets:
        try:
            verifier = Webhook(one)
        except (binascii.Error, EmptyWebhookSecretError) as error:
            raise Misused("this is no webhook secret: whsec_ and base64 is expected") from error
        try:
            verifier.verify(body, given, json_parse=False)
        except (WebhookVerificationError, ValueError) as error:
            # ValueError: headers or bytes that no sender of ours makes.
            fault = str(error)
            continue
        return _event(given["webhook-id"], body)
    raise BadSignature(f"not a webhook that was signed with this secret just now: {fault}")


def _event(id_: str, body: bytes | str) -> Event:
    try:
        told = msgspec.json.decode(body, type=Told)
    except msgspec.DecodeError as error:
        raise BadSignature(f"signed, but not an event: {error}") from error
    return Event(id=id_, type=told.type, timestamp=told.timestamp, data=told.data)
