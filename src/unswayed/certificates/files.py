"""Certificates in files: arrays and JSON, nothing pickled, every family by its own kind."""

import os
from collections.abc import Mapping
from typing import Any

from unswayed.certificates.protocol import FAMILIES, About, Certified
from unswayed.errors import InputError, StoreError
from unswayed.files import damaged, read_arrays, write_arrays
from unswayed.votes import Votes

FORMAT = 1
WHAT = "file of votes or certificates"


def pack(certs: Certified) -> tuple[dict[str, Any], dict[str, Any]]:
    """(JSON header, arrays) that `unpack` turns back into equal certificates."""
    about = certs.about
    arrays = {"about.targets": about.targets, "about.entries": about.entries}
    if about.ones is not None:
        arrays["about.ones"] = about.ones
    told = {
        "classes": about.classes,
        "threat": dict(about.threat),
        "target_names": list(about.target_names),
        "class_names": list(about.class_names),
        "node_names": list(about.node_names),
    }
    return {"kind": certs.kind, "about": told, "header": certs.header()}, {**arrays, **certs.arrays()}


def unpack(packed: Mapping[str, Any], arrays: Mapping[str, Any]) -> Certified:
    """The certificates that `pack` described."""
    if (family := FAMILIES.get(packed["kind"])) is None:
        raise StoreError(
            f"holds certificates of kind {packed['kind']!r}; import the package that defines them first."
        )
    about = About(
        **packed["about"], **{name[6:]: arrays[name] for name in arrays if name.startswith("about.")}
    )
    own = {name: value for name, value in arrays.items() if not name.startswith("about.")}
    return family.restore(about, own, packed["header"])


def save(certs: Certified, path: str | os.PathLike[str]) -> None:
    """Write certificates to one file, atomically."""
    header, arrays = pack(certs)
    write_arrays(path, {"certificates": FORMAT, **header}, arrays)


def read(path: str | os.PathLike[str]) -> "Votes | Certified":
    """The votes or the certificates in this file, whichever it holds."""
    header, arrays = read_arrays(path, WHAT)
    if "certificates" not in header:
        return Votes.from_file(path, header, arrays)
    if header["certificates"] != FORMAT:
        raise StoreError(f"{path} was written by another version of this package.")
    try:
        return unpack(header, arrays)
    except StoreError as error:
        raise StoreError(f"{path} {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError, InputError) as error:
        raise damaged(path, WHAT) from error
