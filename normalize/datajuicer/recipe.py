"""Read a data-juicer recipe and check what can be checked without importing data-juicer."""

import ast
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from tracemill.normalize.operators.operator_rows import ACTION_FIELDS, ROW_FIELDS
from tracemill.records.errors import NormalizeError
from tracemill.records.identity import canonical_json, digest

OPERATORS_VERSION = "n4"  # raise it when one of our operators judges a row differently
_CONDITIONS = ("unless", "filter_condition")
_LABEL_KEYS = ("text_keys", "text_key", "field_key", "filter_condition")  # distinguish operators of one name
_KEY_CHARS = 60
_MOST_CHARACTERS = 200_000  # a recipe has a few thousand, and YAML takes seconds per MB
INSTALL = "run `pip install 'py-data-juicer>=1.6.1' aiohttp`"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The `process` list of a recipe: operators and their arguments, in order.

    `labels` names each operator by name and field, `side_length_filter(chosen)`. `fingerprint` changes
    with the operators, their arguments, their code and the version of data-juicer.
    """

    path: Path
    process: tuple[tuple[str, Mapping[str, Any]], ...]
    labels: tuple[str, ...]
    custom_operators: tuple[Path, ...]
    fingerprint: str

    @property
    def name(self) -> str:
        """Return file name and fingerprint, as a normalized pair records them."""
        return f"{self.path.stem}-{self.fingerprint[:12]}"

    def of_actions(self) -> "Recipe":
        """Return the recipe with only the operators that can judge a single action.

        These read fields of the chosen side and no others. The fingerprint stays the same.
        """
        chosen = [_reads_chosen_alone(arguments) for _, arguments in self.process]
        return replace(
            self,
            process=tuple(each for each, is_in in zip(self.process, chosen, strict=True) if is_in),
            labels=tuple(each for each, is_in in zip(self.labels, chosen, strict=True) if is_in),
        )


def default_recipe() -> Path:
    """Return the path of the recipe that ships with tracemill."""
    return Path(str(files("tracemill"))) / "configs" / "normalize" / "default.yaml"


def check_available() -> None:
    """Raise NormalizeError if data-juicer, or a package it needs and does not declare, is missing.

    It imports nothing, so that a run can call it before it spends money.
    """
    for module, package in (("data_juicer", "py-data-juicer"), ("aiohttp", "aiohttp")):
        if not _is_importable(module):
            raise NormalizeError(f"{package} is not installed", do=INSTALL)
    version = metadata.version("py-data-juicer")
    if tuple(int(number) for number in version.split(".")[:2]) < (1, 6):
        raise NormalizeError(f"py-data-juicer {version} is installed", "1.6.1 or later", INSTALL)


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # sys.modules holds None for it
        return False


def load_recipe(path: Path | None = None) -> Recipe:
    """Load a recipe from a YAML file, by default the one that ships.

    Raises NormalizeError if the file cannot be read, has no `process` list, or an operator reads a field that
    rows do not have. data-juicer checks names and arguments of operators.
    """
    path = path or default_recipe()
    value = _read_yaml(path)
    process = tuple(_operator(path, item) for item in value["process"])
    custom = tuple((path.parent / item).resolve() for item in value.get("custom_operator_paths") or ())
    for name, arguments in process:
        _check_fields(path, name, arguments)
    return Recipe(path, process, _labels(process), custom, _fingerprint(process, custom))


def _read_yaml(path: Path) -> dict[str, Any]:
    expected = "a data-juicer recipe: a YAML mapping with a `process` list"
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_CHARACTERS + 1)
        if len(text) > _MOST_CHARACTERS:
            raise NormalizeError(f"recipe {path} has more than {_MOST_CHARACTERS:,} characters", expected)
        value = yaml.load(text, _Loader)
    except OSError as error:
        raise NormalizeError(f"recipe {path} cannot be read ({error.strerror})", expected) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NormalizeError(f"recipe {path} is not valid YAML{_where(error)}", expected) from error
    if not isinstance(value, dict) or not isinstance(value.get("process"), list) or not value["process"]:
        raise NormalizeError(f"recipe {path} has no operators", expected)
    return value


class _Loader(yaml.SafeLoader):
    """A loader that refuses duplicate keys in a mapping, as YAML 1.2 (3.2.1.1) demands."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                problem = f"duplicate key {key.value[:_KEY_CHARS]!r}"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


def _where(error: Exception) -> str:
    """Return line and problem in parentheses, "" if the parser gives none."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "nothing that can be read"
    return f" (line {mark.line + 1}: {problem})" if mark is not None else ""


def _operator(path: Path, item: object) -> tuple[str, Mapping[str, Any]]:
    if isinstance(item, str):
        return item, {}
    if isinstance(item, dict) and len(item) == 1:
        [(name, arguments)] = item.items()
        if isinstance(name, str) and isinstance(arguments, dict | None):
            return name, arguments or {}
    raise NormalizeError(f"recipe {path} has an entry that is not an operator", "`- name: {argument: value}`")


def _check_fields(path: Path, name: str, arguments: Mapping[str, Any]) -> None:
    try:
        fields = _fields_read(arguments)
    except SyntaxError as error:
        raise NormalizeError(
            f"{name} in recipe {path} has a condition that cannot be read ({error.msg})",
            "fields, values, comparisons, and, or, not",
        ) from None
    for field in fields:
        if field not in ROW_FIELDS:
            raise NormalizeError(
                f"{name} in recipe {path} reads the field {field!r}", f"one of {', '.join(ROW_FIELDS)}"
            )


def _fields_read(arguments: Mapping[str, Any]) -> list[Any]:
    """Return the fields that an operator reads, from `..._key`, `..._keys` and conditions."""
    fields: list[Any] = []
    for key, value in arguments.items():
        if key.endswith(("_key", "_keys")):
            fields += value if isinstance(value, list) else [value]
        elif key in _CONDITIONS and isinstance(value, str) and value.strip():
            tree = ast.parse(value.strip(), mode="eval")
            fields += sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    return fields


def _reads_chosen_alone(arguments: Mapping[str, Any]) -> bool:
    fields = _fields_read(arguments)
    return all(field in ACTION_FIELDS for field in fields) and any(
        str(field).startswith("chosen") for field in fields
    )


def _labels(process: tuple[tuple[str, Mapping[str, Any]], ...]) -> tuple[str, ...]:
    labels: list[str] = []
    for name, arguments in process:
        fields = next((arguments[key] for key in _LABEL_KEYS if arguments.get(key)), [])
        inner = ", ".join(fields if isinstance(fields, list) else [fields])
        label = f"{name}({inner})" if inner else name
        same = sum(1 for other in labels if other.split("#")[0] == label)
        labels.append(f"{label}#{same + 1}" if same else label)
    return tuple(labels)


def _fingerprint(process: tuple[tuple[str, Mapping[str, Any]], ...], custom: tuple[Path, ...]) -> str:
    try:
        version = metadata.version("py-data-juicer")
    except metadata.PackageNotFoundError:
        version = "none"
    code = [path.read_text(encoding="utf-8") for path in custom if path.is_file()]
    listed = [[name, dict(arguments)] for name, arguments in process]
    return digest(OPERATORS_VERSION, version, canonical_json(listed), *code)
