"""Messages between processes: a line of JSON, followed by the bytes of the files it lists."""

import json
from typing import Any, BinaryIO


def send(stream: BinaryIO, message: dict[str, Any], files: dict[str, bytes] | None = None) -> None:
    """Write a message, with files."""
    sizes = {name: len(content) for name, content in (files or {}).items()}
    head = json.dumps({"message": message, "files": sizes}).encode() + b"\n"
    stream.write(b"".join([head, *(files or {}).values()]))
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], dict[str, bytes]] | None:
    """Read a message and its files; return None if the other end is closed."""
    try:
        head = json.loads(stream.readline())
    except ValueError:
        return None
    files = {name: stream.read(size) for name, size in head["files"].items()}
    whole = all(len(files[name]) == size for name, size in head["files"].items())
    return (head["message"], files) if whole else None
