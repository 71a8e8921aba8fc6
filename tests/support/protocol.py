"""The written worker protocol, for tests that hold the server against it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

PROTOCOL = Path(__file__).parents[2] / "protocol"


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def validator(schema: str) -> Draft202012Validator:
    files = (PROTOCOL / "schemas").rglob("*.json")
    registry: Registry[Any] = Registry().with_resources(
        (contents["$id"], Resource.from_contents(contents)) for contents in map(load, files)
    )
    return Draft202012Validator(load(PROTOCOL / "schemas" / f"{schema}.json"), registry=registry)


def examples(schema: str) -> list[Path]:
    return sorted((PROTOCOL / "examples").glob(f"{schema}.*.json"))


def invalid_examples(schema: str) -> list[Path]:
    return sorted((PROTOCOL / "examples" / "invalid").glob(f"{schema}.*.json"))
