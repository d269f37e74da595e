# ruff: noqa: E501 (patterns)
"""Judge what a command line prints: a secret, settings with secrets among them, or neither.

The line is parsed as a shell does (`harnesses.shell.parse_line`): what flows through its pipes, what is
written to files, which variables hold a secret. Nothing is run.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from tracemill.harnesses.shell.operations import unwrap_operation_command
from tracemill.harnesses.shell.parse_line import SimpleCommand, parse_command
from tracemill.privacy.secrets.picked_fields import (
    TEMPLATE_ENGINES,
    fills_secret,
    is_settings_file,
    names_secret_encoded,
    picks_captured,
    picks_first,
    picks_named_field,
    picks_rest,
)
from tracemill.privacy.secrets.powershell import SHELLS as POWERSHELLS
from tracemill.privacy.secrets.powershell import judge_powershell
from tracemill.privacy.secrets.queries import CLIENTS, find_secret_columns, judge_query
from tracemill.privacy.secrets.secret_commands import (
    IS_ONE_OF,
    PROGRAMS,
    asks_for_secret,
    find_selected_fields,
    is_name_of_secret,
    is_neutral_variable,
    is_plain_fact,
    names_secret,
    prints_environment,
    prints_fields,
    prints_pairs,
    prints_secret,
    prints_variable,
    selects_secret,
)
from tracemill.privacy.secrets.secret_files import FileKind, find_secret_file_kind


class Flow(IntEnum):
    """The kind of text that a command prints."""

    NOTHING = 0
    WORDS = 1
    """Words of the command line itself."""
    OTHER = 2
    PAIRS = 3
    """Names with values, on two lines or on one; the names say which values are secrets."""
    SETTINGS = 4
    """The environment, as lines of a name and a value."""
    MIXED = 5
    """A file of settings, with secrets among them."""
    FIELDS = 6
    """Settings with secrets among them, or one that is a secret by its name."""
    NAMED = 7
    """What a command reads that names a secret; its last line is one if it can be."""
    SECRET = 8


class PrintedOutput(NamedTuple):
    """The kinds of secrets in the output of a command line.

    `whole`: only secrets, and words of the line itself. `first` and `last`: the first or the last line is a
    secret. `settings`: names with values that can be secrets. `pairs`: names that say which values are. `alone`: no output of other commands. `columns`:
    which columns of the printed rows are secrets.
    """

    whole: bool
    first: bool = False
    last: bool = False
    settings: bool = False
    alone: bool = False
    columns: tuple[bool, ...] = ()
    pairs: bool = False


_MAX_DEPTH = 4


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SILENT = _set(
    """cd pushd popd source . true : sleep test [ [[ unset wait alias ulimit mkdir rm mv cp chmod chown touch exit
    return set shopt umask trap hash break continue shift kill"""
)
_ASSIGNING = _set("export local declare typeset readonly")
_READERS = _set(
    """cat bat batcat less more head tail tac nl view type strings xxd od hexdump base64 base32 rev fold fmt
    Get-Content gc"""
)
_PASSING = _READERS | _set(
    """tee tr cut sed awk gawk mawk grep egrep fgrep rg findstr Select-String sort uniq column paste expand json_pp python python3 perl ruby
    node iconv gunzip zcat zstdcat dd dos2unix xmllint pv sponge"""
)
_GREPS = _set("grep egrep fgrep rg findstr Select-String")
_PICKING = _set("cut awk gawk mawk sed")
_QUERIES = _set("jq yq gojq dasel xq tomlq fx")
_WITH_PROGRAM = (_GREPS | _PICKING | _QUERIES | {"tr"}) - {"cut"}
_SAYING = _set("echo printf print Write-Output Write-Host")
_RUNNERS = _set(
    """docker podman nerdctl docker-compose kubectl oc ssh sshpass heroku fly flyctl doppler infisical op aws-vault chamber
    dotenv vagrant gcloud railway teller nsenter chroot watch lxc su direnv sops with-contenv nix-shell busybox winpty
    mise unbuffer script dbus-run-session runuser gosu aws-okta saml2aws minikube multipass limactl colima incus wsl"""
)
_FILE_TOOLS = _set(
    """cp ln ls find fd ag ack locate tree vim vi nvim nano emacs code git curl wget diff wc stat file du which man
    apropos tldr pytest tox rsync scp make just task npm yarn pnpm"""
)
"""Programs whose operands are files, words to search for, or targets."""
_LISTING_TOOLS = _set("kubectl oc helm systemctl journalctl pip pip3 apt apt-get brew conda cargo gem bundle")
"""Programs that show facts about what they name, unless the table says otherwise."""
_QUIET = _set("git pip pip3 apt apt-get npm yarn pnpm dnf yum brew conda composer bundle poetry")
_QUIET_WORK = _set(
    """pull fetch clone checkout switch merge rebase reset init stash submodule gc clean restore add install ci i
    update upgrade remove"""
)
_QUIET_OPTION = re.compile(r"-q{1,3}|-[a-z]*q|--quiet|--silent")
"""With it this work of these programs prints nothing, unless it fails."""
_SHELLS = _set("fish bash sh zsh dash ash ksh powershell pwsh")
_INTERPRETERS = re.compile(
    r"(?:[ib]?python[\d.]*|pypy3?|node|bun|deno|tsx|ts-node|ruby|perl|php|elixir|lua(?:jit)?[\d.]*|julia|erl|Rscript|groovy|scala(?:-cli)?"
    r"|kotlinc?|jshell|ghc|runghc|ghci|clojure|clj|bb|swift|crystal|tclsh|raku|dart|ocaml|racket|guile|sbcl|gjs|qjs|osascript|nu|irb|pry|iex"
    r"|groovysh|csi|janet|octave|gosh|utop)$"
)
_WINDOWS_PROGRAM = re.compile(r"(?i)(?:.*[\\/])?(?P<name>[\w-]+)\.exe")
_AWAY = re.compile(r"1?(?:>|>>|>\|)$|&>>?$")
_SHOWN = re.compile(r"/dev/(?:stdout|stderr|tty|fd/[12])$|&?[12]$")
_VARIABLE = re.compile(
    r"(?<!\\)\$(?:(?:env:)?(?P<plain>[A-Za-z_]\w*)|\{(?P<sign>[#!]?)(?P<name>[A-Za-z_]\w*)(?P<rest>[^{}]*)\})"
)
_PERCENT = re.compile(r"%(\w+)%")  # a variable of cmd.exe
_POWERSHELL = re.compile(r"\$env:\w+")
_LISTED = re.compile(r"-[a-zA-Z]*")
_CREDENTIALS_SCRIPT = re.compile(
    r"(?:^|[/_-])(?:(?:dump|show|print|list|get|read|decrypt|reveal|export)[_-]?(?:\w+[_-])?)?(?:creds?|credentials|secrets?|passwords?|tokens?)\.(?:groovy|py|rb|js|mjs|ts|php|pl|exs?|kts|scala|r|R|jl|lua|sh|ps1|sql)$"
)
"""A script that prints credentials, by its name."""
_TOKEN_FILE = re.compile(
    r"/(?:authtoken|(?:api|auth)[-_]?key)$|(?:^|/)(?:(?:[\w-]+-)?token|[\w-]+-password|initialAdminPassword|\.(?:token|secret|password))$"
    r"|^(?:~|/(?:etc|var|run|opt|srv|mnt|home|root))/(?:[\w.-]+/)*(?!bin/)[\w-]+[_-](?:token|password|passphrase|secret|api_key|api-key)$"
)
_RANDOM = re.compile(r"/dev/u?random$")
_COUNTS = re.compile(
    r"length|(?<![\w.])keys\b|\.keys\(|\bhas\(|\btype\b|[=!]=|\btest\(|\bNR\b|\bNF\b(?!\W*})|\blen\(|\.size|\.length|bool\(|hash"
)
_AFTER_NAME = re.compile(
    r"s(?P<sign>[/|#,~])[^\w]*(?:export )?(?P<name>[A-Za-z_]\w*)[\"']?(?:\\?[\s*?]|\\s|\[[^\]]*\])*[=:](?:(?!(?P=sign)).)*(?P=sign)(?:\\\d)?(?P=sign)"
)
_SELECT = re.compile(r"select\([^()]*\)")
_FIELD = re.compile(r"\.\[?[\"']?([A-Za-z_][\w-]*)")
_OTHER_FIELD = re.compile(
    r"(?i)(?:user\w*|login|e?mail|url|uri|name|u?id|arn|host\w*|port|version|expires?\w*|type|status|title|kind|namespace"
    r"|resourceVersion|creationTimestamp|generation)$"
)
_CONTENT = _set("value data plaintext content payload spec")
_ENVIRONMENT = _set("env environment variables envvars env_vars args labels annotations")
_NO_NAME = re.compile(r"[^\w-]")
_EVALUATORS = _set(
    "jshell irb pry iex ghci groovysh ghc nu clj clojure bb Rscript ipython utop sbcl osascript"
)
"""Interpreters that print the value of an expression."""
_CONSOLES = {
    **dict.fromkeys(
        ("flask", "django-admin", "manage.py", "wp", "iex", "superset", "airflow"), _set("shell shell_plus")
    ),
    **dict.fromkeys(("rails", "bundle", "hanami", "gitlab-rails", "sbt", "rake"), _set("console c")),
    **dict.fromkeys(("artisan", "drush", "console"), _set("tinker php:cli core:cli psysh")),
    **dict.fromkeys(("jenkins-cli.jar", "jenkins-cli"), _set("groovy groovysh")),
    **dict.fromkeys(("lein", "cabal", "stack", "dotnet", "symfony"), _set("repl ghci fsi psysh")),
}
"""Programs that read code from their input, and the word that follows them."""
_CODE_PRINTS = re.compile(
    r"print|console\.\w+|puts|\bp\b|\bpp\b|echo|say\b|write\(|putStr|WriteLine|\bcat\(|\binspect\b|\bdump\(|display"
)
_CODE_MAKES = re.compile(
    r"secrets\.(?:token_\w+|choice)|token_(?:hex|urlsafe)|randomBytes|SecureRandom|random_bytes|Fernet\.generate_key"
    r"|get_random_secret_key|keyring\.get_password|generate_password|generatePassword|get_secret_value|SecretString|getpass\(|get_cookie\(|strong_rand_bytes|OpenSSL::Random|RandomNumberGenerator|Secret\.decrypt\(|\.getPlainText\(|generateKey\(|generate_key\("
)
_CODE_READS = re.compile(
    r"(?:(?i:get_?env|lookup_?env)\w*[!?]?[\s(]+(?:\w+, ?)?|sys\.env(?:\.get)?\(|\benvironment\[|env::var(?:_os)?\(|\$(?:::)?env[(.]|environ(?:\.get\(|\[)|getenv\(|process\.env(?:\.|\[)|ENV(?:\.fetch\(|\[)|get_env!?\((?:\w+, ?)?|GetEnvironmentVariable\(|\$_?ENV[\[{]|Deno\.env\.get\()\s*[\"']?(?P<name>\w+)"
)
_CODE_SETTING = re.compile(
    r"(?:settings|configuration|config|conf|cfg|credentials|secrets)(?P<names>(?:\.\w+[!?]?|\[:?\\*[\"']?\w+\\*[\"']?\]|\([^()]{0,120}\))+)"
)
_CODE_LAST = re.compile(
    r"(?:print|puts|echo|say|log)\b[^;\n]*?[\w\])](?:\.|->\{?|\[:?\\*[\"']?)(?P<name>\w+)\W*$"
)
_METHODS = _set("get fetch dig strip to_s value decode inspect get_secret_value")
_CODE_FIELD = re.compile(
    r"(?:json\.loads?|JSON\.parse|require|safe_load|tomllib\.loads?|read_json|parse_ini_file|yaml_parse_file|toml\.load|YAML\.(?:unsafe_)?load(?:_file)?|yaml\.(?:\w+_)?load|LoadFile|decode_json|from_?[jJ][sS][oO][nN]|read_yaml|parseJSON|JSON::parse|JSON\.parsefile|JSON\.decode|YamlElixir\.\w+|TOML\.load_file|IniFile\.load|configparser|include|require_once|include_once)\b.{0,2000}(?:[\[{$]:?\\*[\"']?(?P<key>\w+)\\*[\"']?[\]}]?|\.(?P<field>\w+)"
    r"|\.(?:dig|fetch|get)\((?:[^()]*[,\s])?[:\"'\\]*(?P<last>\w+)[\"'\\]*\))\W*$",
    re.DOTALL,
)
_CODE_CONSTANT = re.compile(r"\b(?:echo|print|puts)\s*\(?\s*(?P<name>[A-Z][A-Z0-9_]{3,60})\s*\)?\s*(?:;|$)")
_CODE_FILE = re.compile(
    r"(?:open|readFileSync|read_text|File\.read|file_get_contents|Path)\(\s*[\"'](?P<path>[^\"']+)[\"']"
)
_CODE_ENVIRONMENT = re.compile(
    r"os\.environ(?:\.items\(\)|\.copy\(\))?(?=[)\s]*(?:$|[;:\n}]))|process\.env(?![.\[\w])|ENV\.(?:to_h|each|inspect)|Deno\.env\.toObject|\bputs ENV\b|getenv\(\)"
)
_CODE_HARMLESS = re.compile(
    r"\blen\(|bool\(|!!|is (?:not )?None|\.length\b|\bin os\.environ|hashlib|sha256|md5|createHash|\*{3}|[\"'] in |isinstance|type\("
)


@lru_cache(maxsize=512)
def find_printed_secrets(line: str) -> PrintedOutput | None:
    """Return which secrets the output of a command line holds; None without any."""
    flows = [flow for flow in _Line().flows(line) if flow != Flow.NOTHING]
    printed = _summary(flows)
    return printed._replace(columns=find_secret_columns(line)) if printed and not printed.whole else printed


def find_secrets_of_code(code: str) -> PrintedOutput | None:
    """Return which secrets a program in Python, JavaScript, Ruby, Perl or PHP prints."""
    flow = _code_flow(code)
    if flow < Flow.SETTINGS:
        return None
    return PrintedOutput(False, last=flow == Flow.SECRET, settings=flow == Flow.SETTINGS)


def find_secrets_of_file(path: str) -> PrintedOutput | None:
    """Return which secrets a file holds that is shown."""
    kind = _secret_file_kind(path)
    return None if kind is None else PrintedOutput(kind is FileKind.SECRET)


def _secret_file_kind(path: str) -> FileKind | None:
    """Return which secrets a file holds.

    A file without a suffix that is named after one token is that token.
    """
    return FileKind.SECRET if _TOKEN_FILE.search(path) else find_secret_file_kind(path)


def _summary(flows: Sequence[Flow]) -> PrintedOutput | None:
    if max(flows, default=Flow.NOTHING) < Flow.PAIRS:
        return None
    printing = [flow for flow in flows if flow > Flow.WORDS]
    whole = all(flow == Flow.SECRET for flow in printing)
    return PrintedOutput(
        whole,
        printing[0] == Flow.SECRET,
        printing[-1] >= Flow.NAMED,
        max(printing) == Flow.SETTINGS,
        min(printing) > Flow.OTHER,
        pairs=max(printing) == Flow.PAIRS,
    )


class _Line:
    """A command line, read command by command: its secret variables and what each pipeline prints."""

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._shown: dict[str, Flow] = {}
        self._literal: dict[str, str] = {}
        self._written: dict[str, Flow] = {}
        self._piped: tuple[str, ...] = ()
        self._given_files: tuple[str, ...] = ()

    def flows(self, line: str) -> list[Flow]:
        """Return what each pipeline of a line prints."""
        commands = parse_command(line) if self._depth < _MAX_DEPTH else None
        if commands is None and "." in line and judge_powershell(line):
            return [Flow.SECRET]
        found: list[Flow] = []
        openers: list[int] = []
        for pipeline in _pipelines(commands or ()):
            found.append(self._pipeline(pipeline, found, openers))
        return found

    def _inner(self, line: str) -> Flow:
        """Return what a line inside this one prints as a whole."""
        inner = _Line(self._depth + 1)
        inner._shown, inner._literal, inner._written = self._shown, self._literal, self._written
        flows = [flow for flow in inner.flows(line) if flow != Flow.NOTHING]
        printed = _summary(flows)
        if printed is None:
            return Flow.OTHER
        if printed.whole or printed.last or printed.pairs:
            return max(flows)
        return Flow.SETTINGS if printed.settings else Flow.FIELDS

    def _pipeline(self, pipeline: list[SimpleCommand], found: list[Flow], openers: list[int]) -> Flow:
        flow = Flow.NOTHING
        for at, command in enumerate(pipeline):
            for keyword in command.keywords:
                if keyword in ("{", "while", "until", "if"):
                    openers.append(len(found))
                elif keyword in ("}", "done", "fi"):
                    start = openers.pop() if openers else len(found)
                    if not at and not command.argv and (len(pipeline) > 1 or _is_away(command)):
                        flow = max(found[start:], default=Flow.NOTHING)
                        del found[start:]
                    if self._read(_inputs(command)) == Flow.SECRET:
                        found[start:] = [
                            Flow.SECRET if each == Flow.OTHER else each for each in found[start:]
                        ]
            if command.argv[:1] == ("for",):
                openers.append(len(found))
            self._piped = pipeline[at - 1].argv if at else ()
            flow = self._stage(command, flow, piped=at > 0)
        return flow

    def _stage(self, command: SimpleCommand, flow: Flow, *, piped: bool) -> Flow:
        """Return what a command prints with input `flow`, and note the variables that it sets."""
        for operator, target in command.redirects:
            if operator == "<<<":
                flow, piped = self._said([target]), True
            elif operator == "<" and command.argv:
                flow, piped = max(flow, self._read([target])), True
            elif operator == "<<" and command.heredoc:
                flow, piped = self._said([command.heredoc]), True
        self._given_files = tuple(_inputs(command))
        self._assign(command.assignments)
        printed = (
            self._words(command.argv, flow, piped)
            if command.argv
            else (flow if not command.assignments else Flow.NOTHING)
        )
        given = command.heredoc or next((text for sign, text in command.redirects if sign == "<<<"), None)
        if given and command.argv:
            printed = self._given_text(command.argv, given, printed)
        if _is_away(command):
            self._written.update((target, printed) for _, target in command.redirects)
            return Flow.NOTHING
        return printed

    def _given_text(self, argv: tuple[str, ...], text: str, printed: Flow) -> Flow:
        """Return what an interpreter or database client prints whose program is a given text."""
        words = _unwrapped(argv)
        if _is_evaluator(words):
            return _evaluated(text)
        if words and _INTERPRETERS.match(_name(words[0])):
            return _code_flow(text)
        if _is_console(words):
            return _flow_of_expression(text)
        client = next((_name(word) for word in words if _name(word) in CLIENTS), None)
        return max(printed, _flow_of_query(client, [text])) if client else printed

    def _words(self, argv: tuple[str, ...], flow: Flow, piped: bool) -> Flow:
        words = _unwrapped(argv)
        if "xargs" in argv[: len(argv) - len(words)]:
            return flow if not words or _name(words[0]) in ("xargs", "echo", "printf") else Flow.OTHER
        if not words:
            return Flow.SETTINGS if "env" in map(_name, argv) else Flow.NOTHING
        program = _name(words[0])
        if program in _SAYING:
            return self._said(_past_options(words[1:]))
        if (own := self._own(program, words, flow, piped)) is not None:
            return own
        if _is_quiet(program, words):
            return Flow.NOTHING
        if prints_secret(words):
            return Flow.SECRET
        if _INTERPRETERS.match(program) and prints_secret(words[1:]):
            return Flow.SECRET
        if program not in _READS_INPUT and (selected := selects_secret(words)) is not None:
            return Flow.SECRET if selected else Flow.FIELDS
        if _is_console(words) and self._piped:
            return _flow_of_expression(" ".join(self._piped))
        if self._piped and _name(self._piped[0]) in _SAYING and (code := self._piped_code(program, words)):
            return code
        if prints_fields(words) or prints_variable(words):
            return Flow.FIELDS
        if prints_environment(words):
            return Flow.SETTINGS
        if prints_pairs(words):
            return Flow.PAIRS
        if program in CLIENTS:
            return _queried_database(program, words, self._piped[1:])
        if (inner := self._wrapped(program, words)) is not None:
            return inner
        if program in _PASSING | _QUERIES and not _INTERPRETERS.match(program):
            return self._passed(program, words, flow, piped)
        if program in _FILE_TOOLS | {"docker", "podman", "nerdctl"}:
            return self._passed(program, words, flow, piped)
        if filled := [each for each in map(fills_secret, words[1:]) if each is not None]:
            return Flow.SECRET if program in TEMPLATE_ENGINES and all(filled) else Flow.NAMED
        scripts = (*words[1:], *self._given_files)
        if (_INTERPRETERS.match(program) or _is_evaluator(words)) and any(
            map(_CREDENTIALS_SCRIPT.search, scripts)
        ):
            return Flow.FIELDS
        asked = asks_for_secret(words[1:] if _INTERPRETERS.match(program) else words)
        if asked is not None:
            return Flow.SECRET if asked else Flow.FIELDS
        if program not in _LISTING_TOOLS and names_secret(words):
            return Flow.NAMED
        return self._passed(program, words, flow, piped)

    def _piped_code(self, program: str, words: tuple[str, ...]) -> Flow | None:
        """Return what an interpreter prints whose program an `echo` before it gives; None for others."""
        text = " ".join(map(_bare, _past_options(self._piped[1:])))
        if _is_evaluator(words):
            return _evaluated(text)
        return _code_flow(text) if _INTERPRETERS.match(program) and not _operands(words) else None

    def _own(self, program: str, words: tuple[str, ...], flow: Flow, piped: bool) -> Flow | None:
        """Return what shell builtins, environment readers and interpreters print; None for others."""
        rest = words[1:]
        if program == "set" and not rest:
            return Flow.SETTINGS
        if program in _SILENT:
            return Flow.NOTHING
        if program in _ASSIGNING:
            if program != "local" and all(_LISTED.fullmatch(word) for word in rest):
                return Flow.SETTINGS
            self._assign(rest)
            return Flow.NOTHING
        if program == "read":
            unseen = any(re.fullmatch(r"-\w*s\w*", word) for word in rest)
            for name in filter(str.isidentifier, rest):
                self._shown[name] = Flow.SECRET if unseen and is_name_of_secret(name) else flow
            return Flow.NOTHING
        if program == "for":
            self._loop(rest)
            return Flow.NOTHING
        if program == "eval":
            return self._inner(" ".join(map(_unescaped, rest))) if rest else Flow.NOTHING
        if program == "printenv" and (names := _operands(words)):
            if any(map(is_name_of_secret, names)):
                return Flow.SECRET
            return Flow.FIELDS if any(map(is_neutral_variable, names)) else Flow.OTHER
        if variable := _POWERSHELL.fullmatch(words[0]):
            return self._said([variable[0]])
        if program in ("env", "printenv", "set") and not _operands(words):
            return Flow.SETTINGS
        code = _inline_code(program, words)
        return None if code is None else _code_flow(code, flow if piped else Flow.NOTHING)

    def _wrapped(self, program: str, words: tuple[str, ...]) -> Flow | None:
        """Return what a command prints that another one runs: in a shell, a container, another machine."""
        if program in _SHELLS:
            option = next(
                (at for at, word in enumerate(words) if re.fullmatch(r"-\w*c|-Command", word)), None
            )
            if option is None or option + 1 >= len(words):
                return None
            line = _unescaped(words[option + 1])
            if program not in POWERSHELLS:
                return self._inner(line)
            judged = judge_powershell(" ".join((line, *words[option + 2 :])))
            inner = Flow.FIELDS if judged is False else Flow.NOTHING
            return Flow.SECRET if judged else max(inner, self._inner(line))
        if program == "cmd" and (
            at := next((at for at, word in enumerate(words) if word.lower() == "/c"), 0)
        ):
            return self._inner(_PERCENT.sub(r"$\1", " ".join(map(_unescaped, words[at + 1 :]))))
        if program not in _RUNNERS:
            return None
        for at, word in enumerate(words[1:], 1):
            line = _unescaped(word.partition("=")[2] if word.startswith("--") else word)
            if " " in line:
                return self._inner(line)
            if _name(word) in _KNOWN and (at > 1 or program in ("ssh", "watch", "busybox", "dotenv", "wsl")):
                return self._words(words[at:], Flow.NOTHING, piped=False)
        inner = words[words.index("--") + 1 :] if "--" in words else ()
        if not inner and "exec" in words[1:4]:
            inner = tuple(word for word in words[words.index("exec") + 1 :] if word[:1] != "-")[1:]
        return self._words(inner, Flow.NOTHING, piped=False) if inner else None

    def _passed(self, program: str, words: tuple[str, ...], flow: Flow, piped: bool) -> Flow:
        """Return what a command prints of the files that it names and of its piped input."""
        if program == "openssl" and words[1:2] in (("base64",), ("enc",)):
            return flow if piped else self._read(words[2:])
        if program not in _PASSING | _QUERIES:
            return Flow.OTHER
        operands = _operands(words)
        at = (
            next((at for at, word in enumerate(operands) if word[:1] in ".'"), 0)
            if program in _QUERIES
            else 0
        )
        query = " ".join(operands[at : at + 1]) if program in _WITH_PROGRAM else ""
        read = self._read(operands[at + 1 :] if query else operands)
        if program == "dd":
            read = self._read([word[3:] for word in words if word.startswith("if=")])
        given = max(read, flow)
        settings = any(map(is_settings_file, operands))
        if program in _GREPS and picks_rest(" ".join(operands)):
            return Flow.SECRET if settings or given > Flow.SETTINGS else Flow.NAMED
        if program in _PICKING and picks_named_field(query):
            return Flow.SECRET if given > Flow.SETTINGS else Flow.NAMED
        if program == "sed" and "-n" in " ".join(words[1:3]) and _picks_secret(query):
            return Flow.SECRET
        if _COUNTS.search(_SELECT.sub("", query)) or (program in _GREPS and _tells_only(words)):
            return Flow.OTHER
        if program in _QUERIES:
            return _queried(query, given, any(map(_names_secret, self._piped)))
        if program in _GREPS and Flow.SETTINGS <= given <= Flow.FIELDS:
            return _searched(query, given)
        if program in _GREPS and settings and is_name_of_secret(_NO_NAME.sub("", query)):
            return Flow.PAIRS
        if program in _READERS and settings and given < Flow.PAIRS:
            return Flow.PAIRS
        if program in _PICKING and Flow.PAIRS <= given <= Flow.FIELDS and picks_first(words):
            return Flow.OTHER
        if program in _PICKING and given == Flow.PAIRS:
            return Flow.NAMED
        if program in _PICKING and given in (Flow.SETTINGS, Flow.MIXED, Flow.FIELDS):
            named = is_name_of_secret(_NO_NAME.sub("", query)) and "$2" in query
            named = named or _picks_secret(query)
            return Flow.FIELDS if given < Flow.FIELDS and not named else Flow.SECRET
        return given if given > Flow.WORDS else Flow.OTHER

    def _read(self, paths: Iterable[str]) -> Flow:
        """Return what the files hold that a command reads."""
        flow = Flow.NOTHING
        for path in paths:
            place = self._expand(path)
            kind = _secret_file_kind(place)
            flow = max(flow, self._written.get(place, Flow.NOTHING))
            if kind is FileKind.SECRET or _RANDOM.search(place):
                return Flow.SECRET
            if kind is FileKind.FIELDS:
                flow = max(flow, Flow.MIXED if ".env" in place else Flow.FIELDS)
        return flow

    def _said(self, words: Iterable[str]) -> Flow:
        """Return what printed words hold."""
        flow = Flow.WORDS
        for word in words:
            if len(word) > 1 and word[0] == word[-1] == "'":
                continue
            inner = [self._inner(line) for line in _substitutions(word)]
            flow = max(flow, *inner, self._flow_of_variables(word))
        return flow

    def _flow_of_variables(self, word: str) -> Flow:
        """Return what the variables in a word hold; a length or a switch is none of it."""
        flow = Flow.WORDS
        for match in _VARIABLE.finditer(word):
            name = match["plain"] or match["name"]
            hidden = match["sign"] == "#" or (match["rest"] or "").lstrip(":").startswith("+")
            known = Flow.SECRET if is_name_of_secret(name) else Flow.OTHER
            flow = max(flow, Flow.OTHER if hidden else self._shown.get(name, known))
        return flow

    def _assign(self, words: Iterable[str]) -> None:
        for word in words:
            name, sign, value = word.lstrip("\"'").partition("=")
            if not sign or not name.isidentifier():
                continue
            inner = [self._inner(line) for line in _substitutions(value)]
            if inner:
                self._shown[name] = max(inner)
            elif "$" in value:
                self._shown[name] = Flow.SECRET if is_name_of_secret(name) else self._flow_of_variables(value)
            else:
                self._literal[name] = _bare(value)

    def _loop(self, words: tuple[str, ...]) -> None:
        """Note the variable of `for NAME in WORDS`: it is one of these words."""
        if words[1:2] == ("in",):
            self._literal[words[0]] = next(
                (word for word in words[2:] if find_secret_file_kind(word)), words[-1]
            )
            self._shown[words[0]] = max(map(self._flow_of_variables, words[2:]), default=Flow.WORDS)

    def _expand(self, word: str) -> str:
        return _VARIABLE.sub(lambda found: self._literal.get(found["plain"] or found["name"], found[0]), word)


_KNOWN = (
    PROGRAMS
    | _READERS
    | _SHELLS
    | CLIENTS.keys()
    | {"set", "export", "printenv", "echo", "printf", "env", "jq", "yq", "python", "python3", "node"}
)


_READS_INPUT = _PASSING - {"xmllint"} | _QUERIES | CLIENTS.keys() | _FILE_TOOLS


def _is_quiet(program: str, words: tuple[str, ...]) -> bool:
    """Tell whether a command is told to print nothing."""
    if program == "sed":
        return any(re.fullmatch(r"-[a-zA-Z]*i.*|--in-place.*", word) for word in words)
    works = program in _QUIET and not _QUIET_WORK.isdisjoint(_operands(words)[:2])
    return works and any(map(_QUIET_OPTION.fullmatch, words))


def _unwrapped(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command inside its wrappers; `sudo -u USER` is one."""
    if argv[0] in ("sudo", "doas"):
        at = 1
        while at < len(argv) and argv[at].startswith("-"):
            at += 1 + bool(re.fullmatch(r"-[a-zA-Z]*[ughpCrtT]|--(?:user|group|host|prompt)", argv[at]))
        argv = ("sudo", *argv[at:])
    words = unwrap_operation_command(argv)
    if words and (program := _WINDOWS_PROGRAM.fullmatch(words[0])):
        return program["name"], *words[1:]
    return words


def _is_evaluator(words: tuple[str, ...]) -> bool:
    """Tell whether a command is a console: it evaluates the code on its input, behind prompts."""
    if words and _name(words[0]) in _EVALUATORS:
        return True
    for at, word in enumerate(words[:5]):
        if (following := _CONSOLES.get(_name(word))) and not following.isdisjoint(words[at + 1 :]):
            return True
    return False


def _evaluated(code: str) -> Flow:
    """Return what a console prints of code on its input: its last line can be a secret."""
    return min(_code_flow(f"print({code})"), Flow.NAMED)


def _is_console(words: tuple[str, ...]) -> bool:
    """Tell whether a command evaluates the expressions on its input."""
    return _name(words[0]) in ("terraform", "tofu", "terragrunt") and "console" in words if words else False


def _flow_of_expression(text: str) -> Flow:
    return Flow.SECRET if any(map(is_name_of_secret, re.findall(r"\w+", text))) else Flow.OTHER


def _picks_secret(query: str) -> bool:
    """Tell whether `sed` prints what follows the name of a secret: `s/^API_KEY=//p`."""
    found = _AFTER_NAME.search(query)
    return found is not None and is_name_of_secret(found["name"])


def _queried_database(program: str, words: tuple[str, ...], piped: tuple[str, ...]) -> Flow:
    """Return what a database client prints for the queries on its command line or input."""
    options = CLIENTS[program]
    queries = _operands(words)[1:] if not options else []
    for at, word in enumerate(words[1:], 1):
        option, sign, value = word.partition("=")
        bundled = len(option) > 2 and option[1] != "-" and f"-{option[-1]}" in options
        if option in options or bundled:
            queries.append(value if sign else " ".join(words[at + 1 : at + 2]))
    return _flow_of_query(program, queries or piped)


def _flow_of_query(program: str, queries: Iterable[str]) -> Flow:
    judged = [judge_query(program, _bare(query)) for query in queries]
    if not any(each is not None for each in judged):
        return Flow.OTHER
    return Flow.SECRET if all(judged) else Flow.FIELDS


def _pipelines(commands: Iterable[SimpleCommand]) -> Iterator[list[SimpleCommand]]:
    pipeline: list[SimpleCommand] = []
    for command in commands:
        if pipeline and command.joiner not in ("|", "|&"):
            yield pipeline
            pipeline = []
        pipeline.append(command)
    if pipeline:
        yield pipeline


def _inputs(command: SimpleCommand) -> list[str]:
    return [target for sign, target in command.redirects if sign == "<"]


def _is_away(command: SimpleCommand) -> bool:
    """Tell whether the output goes to a file, or nowhere."""
    return any(_AWAY.match(sign) and not _SHOWN.match(target) for sign, target in command.redirects)


def _searched(pattern: str, given: Flow) -> Flow:
    """Return what `grep` prints of settings: those of a name."""
    if is_name_of_secret(_NO_NAME.sub("", pattern)):
        return Flow.SECRET if "(?<=" in pattern or "\\K" in pattern else Flow.FIELDS
    return min(given, Flow.MIXED)


def _names_secret(word: str) -> bool:
    """Tell whether a word ends in the name of a secret, such as the path of a URL."""
    return is_name_of_secret(re.split(r"[/.:?=]", word.strip("'\"/"))[-1]) or names_secret_encoded(word)


def _queried(query: str, given: Flow, named: bool) -> Flow:
    """Return what a query of JSON or YAML prints: a value by its name.

    `named`: the command before it reads something with the name of a secret.
    """
    names = _find_query_names(query.strip("'\""))
    held = bool(names) and names[-1].lower() in _CONTENT
    while len(names) > 1 and names[-1].lower() in _CONTENT:
        names.pop()
    if not names:
        return given if given > Flow.SETTINGS else Flow.OTHER
    if (shown := find_selected_fields(query.rpartition("|")[2])) and all(map(is_plain_fact, shown)):
        return Flow.OTHER
    if is_name_of_secret(names[-1]):
        return Flow.SECRET
    if names[-1].lower() in _ENVIRONMENT and given == Flow.SETTINGS:
        return given
    if held and named:
        return max(given, Flow.NAMED)
    return Flow.OTHER if _OTHER_FIELD.match(names[-1]) or given <= Flow.SETTINGS else given


def _find_query_names(query: str) -> list[str]:
    """Return the fields of a query; one that is selected by its name counts as that name."""
    return _FIELD.findall(_SELECT.sub("", IS_ONE_OF.sub(lambda found: f".{found[1] or found[2]}", query)))


def _code_flow(code: str, given: Flow = Flow.NOTHING) -> Flow:
    """Return what a program on the command line prints."""
    if not _CODE_PRINTS.search(code) or _CODE_HARMLESS.search(code):
        return Flow.OTHER
    names = [found["name"] for found in _CODE_READS.finditer(code)]
    for found in _CODE_SETTING.finditer(code):
        chain = [name for name in re.findall(r"\w+", found["names"]) if name not in _METHODS]
        names += chain if "(" in found["names"] else chain[-1:]
    names += [found["key"] or found["field"] or found["last"] for found in _CODE_FIELD.finditer(code)]
    files = [found["path"] for found in _CODE_FILE.finditer(code)]
    names += [found["name"] for found in _CODE_CONSTANT.finditer(code)]
    secret = _CODE_MAKES.search(code) or picks_captured(code) or any(map(is_name_of_secret, names))
    kinds = list(map(_secret_file_kind, files))
    if secret or FileKind.SECRET in kinds or given == Flow.SECRET:
        return Flow.SECRET
    if FileKind.FIELDS in kinds:
        return Flow.FIELDS
    if picks_named_field(code):
        return Flow.NAMED
    if (last := _CODE_LAST.search(code)) and is_name_of_secret(last["name"]):
        return Flow.NAMED
    return Flow.SETTINGS if _CODE_ENVIRONMENT.search(code) else Flow.OTHER


_EVALUATING = {
    "wp": ("eval", "shell"),
    "drush": ("eval", "ev", "php:eval", "php-eval"),
    "flask": ("shell",),
    "mix": ("run",),
    "iex": ("-e",),
    "django-admin": ("shell",),
    "dotnet": ("eval",),
    "crystal": ("eval",),
    "artisan": ("tinker",),
}
"""Programs that evaluate code, and the word before it."""


def _inline_code(program: str, words: tuple[str, ...]) -> str | None:
    if program in ("rails", "gitlab-rails") and words[1:2] in (("runner",), ("r",)):
        return " ".join(words[2:3])
    if program == "rabbitmqctl" and words[1:2] == ("eval",):
        return f"print({' '.join(words[2:3])})"
    if (evaluating := _EVALUATING.get(program)) and (
        at := next((at for at, word in enumerate(words[1:], 1) if word in evaluating), 0)
    ):
        code = [word for word in words[at + 1 :] if word[:1] != "-"]
        return code[0] if code else None
    if not _INTERPRETERS.match(program):
        return None
    if given := next((word for word in words if word.startswith("--execute=")), None):
        return given.partition("=")[2]
    for at, word in enumerate(words[1:-1], 1):
        if word in ("--execute", "-c", "-e", "-p", "-pe", "-ne", "-r", "--eval", "--print", "eval") or (
            word.endswith("e") and word[0] == "-" and word[1] != "-"
        ):
            code = words[at + 1]
            return f"print({code})" if word in ("-p", "--print", "-pe") or program in _EVALUATORS else code
    return None


def _tells_only(words: tuple[str, ...]) -> bool:
    """Tell whether `grep` prints a count, a file's name or nothing."""
    return any(
        re.fullmatch(r"-[a-zA-Z]*[qclL][a-zA-Z]*|--count|--quiet|--files-with\w*", word) for word in words[1:]
    )


def _substitutions(word: str) -> Iterator[str]:
    """Yield the lines inside `$(...)` and backticks."""
    at = word.find("$(")
    while at >= 0:
        depth, end = 1, at + 2
        while end < len(word) and depth:
            depth += {"(": 1, ")": -1}.get(word[end], 0)
            end += 1
        yield word[at + 2 : end - 1]
        at = word.find("$(", end)
    if "`" in word:
        yield from word.split("`")[1::2]


def _past_options(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[1:] if words and re.fullmatch(r"-[neE]+", words[0]) else words


def _operands(words: tuple[str, ...]) -> list[str]:
    return [word for word in words[1:] if not word.startswith("-")]


def _bare(word: str) -> str:
    """Return a word without the quotes around it."""
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word


def _unescaped(word: str) -> str:
    """Return a line that another shell gets as a word."""
    if word[:1] == '"':
        return _bare(word).replace("\\$", "$")
    return _bare(word).replace("'\"'\"'", "'").replace("'\\''", "'") if word[:1] == "'" else word


def _name(word: str) -> str:
    return word.rpartition("/")[2]
