"""A filter of system calls for what no namespace closes.

Keyrings of the kernel belong to a login, and the cache of files, locks and watches on files are known to all
sandboxes: one run could leave a message there for another. A record lock seems to be given, since databases
ask for one, and is none.
"""

import os
import platform
import struct

_ARCHITECTURES = {
    "x86_64": (0xC000003E, (248, 249, 250, 27, 187, 221, 327, 451, 73, 254, 294), 72),
    "aarch64": (0xC00000B7, (217, 218, 219, 232, 213, 223, 286, 451, 32, 27, 26), 25),
}
"""The kernel's name of an architecture, its numbers of add_key, request_key, keyctl, mincore, readahead,
fadvise64, preadv2, cachestat, flock, inotify_add_watch and inotify_init1, and that of fcntl."""
_LOCKS = (5, 6, 7, 36, 37, 38)
"""Commands of fcntl that ask for a record lock, or set one."""
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _SECOND_ARGUMENT = 0, 4, 24
_ALLOW, _REFUSE, _PRETEND = 0x7FFF0000, 0x00050001, 0x00050000
"""Answers of the filter: go on, fail with EPERM, or succeed without doing anything."""
_X32 = 0x40000000
"""From here on numbers mean calls of a second kind, which the interpreter never makes."""


def open_filter() -> int | None:
    """Return a descriptor from which bubblewrap reads the filter; None on an unsupported architecture."""
    known = _ARCHITECTURES.get(platform.machine())
    if known is None:
        return None
    architecture, numbers, fcntl = known
    allow = 6 + len(numbers) + len(_LOCKS)
    refuse, pretend = allow + 1, allow + 2
    rules = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 0, refuse - 2, architecture), (_LOAD, 0, 0, _NUMBER)]
    rules += [(_AT_LEAST, refuse - 4, 0, _X32)]
    rules += [(_EQUAL, refuse - place, 0, number) for place, number in enumerate(numbers, len(rules) + 1)]
    rules += [(_EQUAL, 0, allow - len(rules) - 1, fcntl), (_LOAD, 0, 0, _SECOND_ARGUMENT)]
    rules += [(_EQUAL, pretend - place, 0, lock) for place, lock in enumerate(_LOCKS, len(rules) + 1)]
    rules += [(_RETURN, 0, 0, answer) for answer in (_ALLOW, _REFUSE, _PRETEND)]
    descriptor = os.memfd_create("filter")
    os.write(descriptor, b"".join(struct.pack("HBBI", *rule) for rule in rules))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
