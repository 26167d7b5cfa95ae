"""Forms with files in them, as tenants send them."""

from __future__ import annotations

BOUNDARY = b"----form-7MA4YWxk"
CONTENT_TYPE = b"multipart/form-data; boundary=" + BOUNDARY

Part = tuple[str, str | bytes]


def part(name: str, value: str | bytes, filename: str | None = None) -> bytes:
    """One part, without its boundary."""
    file = "" if filename is None else f'; filename="{filename}"\r\nContent-Type: audio/wav'
    value = value.encode() if isinstance(value, str) else value
    return f'Content-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + value


def form_of(*parts: bytes, boundary: bytes = BOUNDARY) -> bytes:
    """A whole form."""
    return b"".join(b"--%b\r\n%b\r\n" % (boundary, each) for each in parts) + b"--" + boundary + b"--\r\n"


def recording(audio: bytes = b"RIFF" + bytes(1020), **fields: str) -> bytes:
    """An audio file with the fields of its request; the model is the pool's."""
    fields = {"model": "sim", **fields}
    return form_of(*(part(name, value) for name, value in fields.items()), part("file", audio, "speech.wav"))
