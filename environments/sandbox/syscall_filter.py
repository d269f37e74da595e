"""A filter of system calls for what no namespace closes.

Keyrings of the kernel belong to a login, and the cache of files, locks and watches on files are known to all
sandboxes: one run could leave a message there for another.
"""

import os
import platform
import struct

_ARCHITECTURES = {
    "x86_64": (0xC000003E, (248, 249, 250, 27, 187, 221, 327, 451, 73, 254, 294)),
    "aarch64": (0xC00000B7, (217, 218, 219, 232, 213, 223, 286, 451, 32, 27, 26)),
}
"""The kernel's name of an architecture, and its numbers of add_key, request_key, keyctl, mincore, readahead,
fadvise64, preadv2, cachestat, flock, inotify_add_watch and inotify_init1."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001
"""Answers of the filter: go on, or fail with EPERM."""
_X32 = 0x40000000
"""From here on numbers mean calls of a second kind, which the interpreter never makes."""


def open_filter() -> int | None:
    """Return a descriptor from which bubblewrap reads the filter; None on an unsupported architecture."""
    known = _ARCHITECTURES.get(platform.machine())
    if known is None:
        return None
    architecture, numbers = known
    refused = len(numbers)
    rules = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 0, refused + 3, architecture), (_LOAD, 0, 0, _NUMBER)]
    rules += [(_AT_LEAST, refused + 1, 0, _X32)]
    rules += [(_EQUAL, refused - place, 0, number) for place, number in enumerate(numbers)]
    rules += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    descriptor = os.memfd_create("filter")
    os.write(descriptor, b"".join(struct.pack("HBBI", *rule) for rule in rules))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
