# ruff: noqa: E501 (literal texts)
"""Surroundings: the text of a session in which a value, a line or a block is planted.

Every setting gets the value and the name it is kept under: a telling one (`STRIPE_SECRET_KEY`), or a neutral
one where the plant has to be known by sight alone. Settings give decoded leaf strings, which is what a
redactor is handed; those of tool-call arguments are JSON text.
"""

import json
import random
from collections.abc import Callable

Setting = Callable[[random.Random, str, str], str]
_NEUTRAL = ("value", "x", "result", "item", "data", "entry", "first", "arg")
_NOISE = (
    "[12:04:11] INFO  worker 3 picked up job 5512",
    "collected 48 items",
    "Building wheels for collected packages: orders",
    '2026-11-20T09:14:02Z level=info msg="listening" port=8080',
    "tests/test_orders.py ..........                                          [ 62%]",
    "   Compiling orders v0.4.2",
    "drwxr-xr-x 2 root root 4096 Nov 12 10:01 src",
    "Already up to date.",
)


def neutral(rng: random.Random) -> str:
    """Return a name that says nothing about its value."""
    return rng.choice(_NEUTRAL)


def _camel(name: str) -> str:
    head, *rest = name.lower().split("_")
    return head + "".join(word.capitalize() for word in rest)


def _filled(template: str) -> Setting:
    """Return a setting that fills a template with the name in three spellings and the value."""
    return lambda rng, name, value: template.format(
        name=name, lower=name.lower(), camel=_camel(name), value=value
    )


def _noise(rng: random.Random, count: int) -> str:
    return "\n".join(rng.choices(_NOISE, k=count))


def _printed(rng: random.Random, name: str, value: str) -> str:
    label = f"{name}: " if name not in _NEUTRAL else ""
    return f"{_noise(rng, 2)}\n{label}{value}\n{_noise(rng, 2)}"


def _json_log(rng: random.Random, name: str, value: str) -> str:
    line = json.dumps({"level": "debug", "step": rng.randrange(99), name.lower(): value, "ok": True})
    return f"{_noise(rng, 1)}\n{line}\n{_noise(rng, 1)}"


def _arguments(rng: random.Random, name: str, value: str) -> str:
    return json.dumps({"command": f"cd /srv/app && {name}='{value}' make deploy", "timeout": 120})


def _nested_json(rng: random.Random, name: str, value: str) -> str:
    inner = json.dumps({"settings": {name.lower(): value, "retries": 3}})
    return json.dumps({"path": "conf/app.json", "content": inner, "mode": "w"})


def _deep_json(rng: random.Random, name: str, value: str) -> str:
    return json.dumps({"event": "post", "body": json.dumps({"payload": json.dumps({name.lower(): value})})})


def _curl(rng: random.Random, name: str, value: str) -> str:
    header = "X-Item" if name in _NEUTRAL else f"X-{name.title().replace('_', '-')}"
    return f"$ curl -s -H '{header}: {value}' http://localhost:8080/v1/items | jq .\n[]\n$ echo done"


def _positional(rng: random.Random, name: str, value: str) -> str:
    flag = "" if name in _NEUTRAL else f"--{name.lower().replace('_', '-')} "
    return f"$ python tools/sync.py {flag}{value} --dry-run\nwould copy 14 files"


def _prose(rng: random.Random, name: str, value: str) -> str:
    phrase = "this one" if name in _NEUTRAL else f"the {name.lower().replace('_', ' ')}"
    return f"I checked the staging project again. Please use {phrase}: {value} and rerun the job, then tell me what failed."


VALUE_SETTINGS: dict[str, Setting] = {
    "tool output: environment": _filled(
        "SHELL=/bin/bash\nLANG=C.UTF-8\n{name}={value}\nTERM=xterm-256color\nSHLVL=1"
    ),
    "tool output: printed": _printed,
    "tool output: json log": _json_log,
    "tool output: table": _filled(
        f"NAME{' ' * 26}VALUE\nREGION{' ' * 24}eu-west-1\n{{name:<30}}{{value}}\nREPLICAS{' ' * 22}3"
    ),
    "tool output: locals": _filled(
        'Traceback (most recent call last):\n  File "app/main.py", line 41, in run\n    client.send(payload)\n'
        "locals: {{'retries': 3, '{lower}': '{value}', 'ok': False}}\nRuntimeError: 403\n"
    ),
    "json: arguments": _arguments,
    "json in json": _nested_json,
    "json in json in json": _deep_json,
    "shell: export": _filled(
        "  411  git pull --rebase\n  412  export {name}={value}\n  413  make test\n  414  ./run.sh --verbose"
    ),
    "shell: header": _curl,
    "shell: argument": _positional,
    "diff": _filled(
        "diff --git a/app/conf.py b/app/conf.py\n--- a/app/conf.py\n+++ b/app/conf.py\n@@ -3,6 +3,7 @@\n"
        ' import os\n \n DEBUG = False\n+{name} = "{value}"\n PORT = 8080\n'
    ),
    "code: python": _filled(
        'import requests\n\n{name} = "{value}"\n\n\ndef fetch(url):\n    """Fetch one page."""\n'
        "    return requests.get(url, timeout=30).json()\n"
    ),
    "code: python call": _filled(
        "client = Client(region='eu', {lower}='{value}', retries=2)\nfor row in client.rows():\n    print(row)\n"
    ),
    "code: javascript": _filled(
        "const app = express();\nconst {camel} = '{value}';\napp.listen(3000, () => console.log('up'));\n"
    ),
    "code: go": _filled(
        'package main\n\nimport "fmt"\n\nconst {camel} = "{value}"\n\nfunc main() {{\n\tfmt.Println("up")\n}}\n'
    ),
    "code: yaml": _filled(
        "services:\n  api:\n    image: api:1.4.2\n    environment:\n      {name}: {value}\n      LOG_LEVEL: info\n"
    ),
    "code: toml": _filled('[service]\nname = "orders"\n{lower} = "{value}"\nworkers = 4\n'),
    "code: ini": _filled("[service]\nname = orders\n{lower} = {value}\nworkers = 4\n"),
    "code: terraform": _filled(
        'module "orders" {{\n  source   = "./orders"\n  replicas = 2\n  {lower} = "{value}"\n}}\n'
    ),
    "code: dockerfile": _filled(
        "FROM python:3.11-slim\nWORKDIR /app\nENV {name}={value}\nCOPY . .\nCMD python -m app\n"
    ),
    "prose": _prose,
    "prose: markdown": _filled(
        "## Setup\n\n1. Clone the repository\n2. Set `{name}` to `{value}`\n3. Run `make test`\n"
    ),
}
_INDENT = "\n        "
BLOCK_SETTINGS: dict[str, Setting] = {
    "tool output: printed": lambda rng, name, value: f"{_noise(rng, 2)}\n{value}\n{_noise(rng, 1)}",
    "tool output: numbered": lambda rng, name, value: "\n".join(
        f"{n:6d}\t{line}" for n, line in enumerate(value.split("\n"), 1)
    ),
    "json: arguments": lambda rng, name, value: json.dumps(
        {"path": "deploy/input.txt", "content": value + "\n"}
    ),
    "json in json": lambda rng, name, value: json.dumps(
        {"event": "write", "body": json.dumps({"path": "deploy/input.txt", "content": value})}
    ),
    "shell: heredoc": lambda rng, name, value: (
        f"$ cat > deploy/input <<'END'\n{value}\nEND\n$ ls deploy\ninput"
    ),
    "diff": lambda rng, name, value: (
        "diff --git a/deploy/input b/deploy/input\nnew file mode 100644\n--- /dev/null\n+++ b/deploy/input\n"
        "@@ -0,0 +1,9 @@\n" + "\n".join("+" + line for line in value.split("\n"))
    ),
    "code: python": lambda rng, name, value: (
        f'import sys\n\nTEXT = r"""{value}"""\n\nsys.stdout.write(TEXT)\n'
    ),
    "code: yaml": lambda rng, name, value: (
        f"kind: ConfigMap\ndata:\n  input: |\n        {value.replace(chr(10), _INDENT)}\n  mode: fast\n"
    ),
    "prose": lambda rng, name, value: (
        f"This is what I get, does it look right to you?\n\n```\n{value}\n```\n\nThen rerun it."
    ),
}
LINE_SETTINGS = BLOCK_SETTINGS | {
    "shell: history": lambda rng, name, value: f"  87  cd /srv/app\n  88  {value}\n  89  make test",
    "code: makefile": lambda rng, name, value: f".PHONY: go\ngo:\n\t{value}\n\t@echo done\n",
    "prose: inline": lambda rng, name, value: (
        f"I ran `{value}` twice and nothing changed, what else can I try?"
    ),
}
