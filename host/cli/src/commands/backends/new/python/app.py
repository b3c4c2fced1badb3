"""Keeps one file. Make it keep what you want kept: README.md says how to build and try it."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import file, store
from wit_world.imports.streams import StreamError_Closed
from wit_world.imports.types import Error, ErrorKind

MANIFEST = """
name = "@NAME@"
version = "0.1.0"
summary = "Keeps one file"

[[setting]]
key = "file"
kind = "file"
access = "write"
required = true
help = "the file"
"""

# Bytes that are read and written at once; the contract allows no more to be written.
CHUNK = 4096


class Backend(exports.Backend):
    def manifest(self):
        return MANIFEST

    def snapshot(self, target, previous):
        now = whole(file.File.open(target, "file").read())
        if now is None:
            return []
        draft = store.Draft()
        write(draft.body(), now)
        return [store.Part("content", store.Draft.finish(draft))]

    def restore(self, target, parts, current):
        opened = file.File.open(target, "file")
        now, stored = whole(opened.read()), content(parts)
        # Another than both: somebody wrote to it. A restore that was cut short may have
        # done its work already.
        if now not in (stored, content(current)):
            raise Err(Error(ErrorKind.CHANGED, "somebody wrote to the file", "try again"))
        if stored is None:
            opened.remove()
            return
        new = opened.replace()
        write(new.body(), stored)
        file.Replacement.finish(new)


def content(parts):
    return whole(parts[0].content.read()) if parts else None


def whole(stream):
    if stream is None:
        return None
    pieces = []
    while True:
        try:
            pieces.append(stream.blocking_read(CHUNK))
        except Err as error:
            if isinstance(error.value, StreamError_Closed):
                return b"".join(pieces)
            raise Err(Error(ErrorKind.OTHER, "it could not be read to its end", None))


def write(stream, content):
    with stream:
        for start in range(0, len(content), CHUNK):
            stream.blocking_write_and_flush(content[start : start + CHUNK])
