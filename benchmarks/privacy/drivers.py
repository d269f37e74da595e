"""Runs another tool on texts, inside that tool's own environment.

    python drivers.py NAME < texts.jsonl > redacted.jsonl

A line in is `{"text": ..., "decode": bool}`: with `decode`, the text is JSON and the tool is given its
decoded value, as its own reader of sessions would. A line out is the text as the tool leaves it. A scanner
finds and does not replace: what it found is replaced here. The last line is `{"seconds": ...}`, CPU
time of the tool and the processes it starts, without the start of this one.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

_FOUND = "<FOUND>"
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY.*?-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----", re.DOTALL)


def _each(change, texts):
    done = []
    for item in texts:
        value = json.loads(item["text"]) if item["decode"] else item["text"]
        value = change(value)
        done.append(json.dumps(value) if item["decode"] else value)
    return done


def dataclaw(texts):
    """Its redaction of values; its renaming of the user who runs it is left out."""
    from dataclaw.secrets import _redact_value

    return _each(lambda value: _redact_value(value)[0], texts)


def teich(texts):
    """Its anonymizer, anew for every text."""
    from teich.anonymize import TraceAnonymizer

    return _each(lambda value: TraceAnonymizer().anonymize_value(value), texts)


def _leaves(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)


def _file_text(item):
    """Return the text for a scanner of files: decoded JSON strings, one per line."""
    if not item["decode"]:
        return item["text"]
    return "\n".join(_leaves(json.loads(item["text"])))


def _replaced(item, found):
    """Return the text without the found `(line, value)` pairs.

    A value is removed from its line only, if the text has lines of its own.
    """
    lines, elsewhere = item["text"].split("\n"), []
    for number, secret in sorted(found, key=lambda pair: len(pair[1]), reverse=True):
        if not item["decode"] and 0 < number <= len(lines) and secret and secret in lines[number - 1]:
            lines[number - 1] = lines[number - 1].replace(secret, _FOUND)
        elif secret:
            elsewhere.append(secret)
    text = "\n".join(lines)
    for secret in elsewhere:
        text = text.replace(secret, _FOUND).replace(json.dumps(secret)[1:-1], _FOUND)
    return text


def detect_secrets(texts):
    """Its default plugins and filters, file by file; a found key header stands for the whole key."""
    from detect_secrets.core.scan import scan_file
    from detect_secrets.settings import default_settings

    done = []
    with tempfile.TemporaryDirectory() as folder, default_settings():
        path = Path(folder) / "text.txt"
        for item in texts:
            path.write_text(_file_text(item), encoding="utf-8", errors="surrogatepass")
            found = list(scan_file(str(path)))
            text = _replaced(
                item, {(s.line_number, s.secret_value or "") for s in found if s.type != "Private Key"}
            )
            key = any(secret.type == "Private Key" for secret in found)
            done.append(_KEY_BLOCK.sub(_FOUND, text) if key else text)
    return done


def kingfisher(texts):
    """Its own rules, without validation, one file for each text, all in one process."""
    binary = Path(sys.executable).parent / "kingfisher"
    with tempfile.TemporaryDirectory() as folder:
        for number, item in enumerate(texts):
            text = _file_text(item)
            (Path(folder) / f"{number}.txt").write_text(text, encoding="utf-8", errors="surrogatepass")
        command = [str(binary), "scan", folder, "--no-validate", "--no-dedup", "--no-update-check"]
        command += ["--git-history=none", "--no-extract-archives", "--format=jsonl", "-j", "1"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    secrets = [set() for _ in texts]
    for line in ran.stdout.splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            finding = json.loads(line)["finding"]
            secrets[int(Path(finding["path"]).stem)].add((finding["line"], finding["snippet"]))
    if ran.returncode not in (0, 200, 205):
        raise SystemExit(f"kingfisher ended with {ran.returncode}: {ran.stderr[-300:]}")
    return [_replaced(item, found) for item, found in zip(texts, secrets, strict=True)]


def main():
    """Texts from stdin through the tool named, to stdout."""
    texts = [json.loads(line) for line in sys.stdin]
    tool = globals()[sys.argv[1].replace("-", "_")]
    tool(texts[:1])
    before = os.times()
    done = tool(texts)
    seconds = sum(os.times()[:4]) - sum(before[:4])
    for text in done:
        print(json.dumps(text))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
