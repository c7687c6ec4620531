"""Just enough of docs/journal-format.md to damage a log on purpose: where its frames begin and end."""
import struct

FILE_HEADER = 32
FRAME_HEADER = 56
MAGIC = 0x42537354


def frames(path):
    """[(offset, size)] of the log's frames, in order."""
    with open(path, "rb") as file:
        content = file.read()
    found, offset = [], FILE_HEADER
    while offset + FRAME_HEADER <= len(content):
        magic, _, _, _, payload = struct.unpack_from("<IIQqI", content, offset)
        if magic != MAGIC:
            break
        size = FRAME_HEADER + payload + 1
        found.append((offset, size))
        offset += size
    return found


def overwrite(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def cut(path, size):
    with open(path, "r+b") as file:
        file.truncate(size)
