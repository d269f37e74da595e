"""Check a built wheel and sdist before they are given to anybody.

python scripts/check_dist.py FOLDER [TAG]

Checks that there is one of each, that their metadata is valid and says the version of the source (and of the
tag), and that the wheel holds what it needs to work alone.
"""

import sys
import tarfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata

ROOT = Path(__file__).resolve().parent.parent
NEEDED = (
    "tracemill/__init__.py",
    "tracemill/py.typed",
    "tracemill/cli/main.py",
    "tracemill/configs/normalize/default.yaml",
    "tracemill/data_cards/card/card.md.jinja",
    "tracemill/records/version.py",
)


def check(folder: Path, tag: str | None = None) -> str:
    """Return the version of a built wheel and sdist. Raises ValueError where something is wrong with them."""
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        raise ValueError(f"{folder} has {len(wheels)} wheels and {len(sdists)} sdists; expected one of each")
    source = (ROOT / "records" / "version.py").read_text(encoding="utf-8")
    version = source.rpartition("=")[2].strip().strip('"')
    if tag is not None and tag != f"v{version}":
        raise ValueError(f"the tag is {tag}; expected v{version}, the version of the source")
    with zipfile.ZipFile(wheels[0]) as archive:
        names = archive.namelist()
        [place] = [name for name in names if name.endswith(".dist-info/METADATA")]
        _check_metadata(archive.read(place), version, wheels[0].name)
        if broken := archive.testzip():
            raise ValueError(f"{wheels[0].name} is damaged at {broken}")
    if lacking := sorted(set(NEEDED) - set(names)):
        raise ValueError(f"{wheels[0].name} lacks {', '.join(lacking)}")
    with tarfile.open(sdists[0]) as archive:
        names = archive.getnames()
        if (place := f"tracemill-{version}/PKG-INFO") not in names:
            raise ValueError(f"{sdists[0].name} lacks {place}")
        file = archive.extractfile(place)
        _check_metadata(file.read() if file else b"", version, sdists[0].name)
    return version


def _check_metadata(data: bytes, version: str, name: str) -> None:
    found = Metadata.from_email(data, validate=True)  # raises with every field that is wrong
    if str(found.version) != version:
        raise ValueError(f"{name} is of version {found.version}; expected {version}")
    if found.name != "tracemill" or found.description_content_type != "text/markdown":
        raise ValueError(f"{name} has no readme in Markdown, or another name than tracemill")
    if not found.license_files or found.requires_python is None:
        raise ValueError(f"{name} names no licence file, or no version of Python")


if __name__ == "__main__":
    try:
        found = check(Path(sys.argv[1]), *sys.argv[2:3])
    except ValueError as error:
        sys.exit(f"check_dist: {error}")
    print(f"tracemill {found}: wheel and sdist are as they should be")
