"""The API's own description (OpenAPI) as a page shows it: groups of calls, each with what it takes and answers."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from switchboard.dashboard.api.schemas import Field, Schemas, description_of, schemas_of

HERE = "http://switchboard.invalid"
"""Where the commands lead, until a page that knows its own address puts that in."""

_METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
_JSON = "application/json"
_SAYS_NOTHING = "Successful Response"
"""What stands where nobody wrote anything."""


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    place: str
    type: str
    required: bool
    description: str
    bounds: str


@dataclass(frozen=True, slots=True)
class Body:
    required: bool
    fields: tuple[Field, ...]
    example: str


@dataclass(frozen=True, slots=True)
class Example:
    """`name` is the code of an error, or empty."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    description: str
    kinds: tuple[str, ...]
    fields: tuple[Field, ...]
    examples: tuple[Example, ...]

    @property
    def good(self) -> bool:
        return self.status < "400"

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.examples if one.name)


@dataclass(frozen=True, slots=True)
class Operation:
    """`scope` is what its key must have; `guarded` is whether it takes a key at all."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    deprecated: bool
    guarded: bool
    scope: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    answers: tuple[Answer, ...]
    command: str


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    title: str
    version: str
    description: str
    groups: tuple[Group, ...]


def reference_of(document: Mapping[str, Any]) -> Reference:
    schemas = schemas_of(document)
    groups: dict[str, list[Operation]] = {}
    for path, operations in document.get("paths", {}).items():
        for method in _METHODS:
            if method in operations:
                given = operations[method]
                group = groups.setdefault(next(iter(given.get("tags", ())), ""), [])
                group.append(operation_of(schemas, method, path, given))
    info = document.get("info", {})
    return Reference(
        title=info.get("title", ""),
        version=info.get("version", ""),
        description=info.get("description", ""),
        groups=tuple(Group(name, tuple(found)) for name, found in groups.items()),
    )


def operation_of(schemas: Schemas, method: str, path: str, given: Mapping[str, Any]) -> Operation:
    parameters = tuple(_parameter(schemas, one) for one in given.get("parameters", ()))
    body = _body(schemas, given["requestBody"]) if "requestBody" in given else None
    guarded = bool(given.get("security"))
    return Operation(
        id=_anchor(given.get("operationId") or f"{method}_{path}"),
        method=method.upper(),
        path=path,
        summary=given.get("summary", ""),
        description=given.get("description", ""),
        deprecated=given.get("deprecated", False),
        guarded=guarded,
        scope=given.get("x-scope", ""),
        parameters=parameters,
        body=body,
        answers=tuple(_answer(schemas, status, one) for status, one in sorted(given.get("responses", {}).items())),
        command=command_for(method.upper(), path, parameters, body, guarded=guarded),
    )


def command_for(method: str, path: str, parameters: tuple[Parameter, ...], body: Body | None, *, guarded: bool) -> str:
    """For a shell. What differs from call to call is a variable, as the key is: a secret is not typed into commands."""
    query = "&".join(f"{one.name}={_variable(one.name)}" for one in parameters if one.place == "query" and one.required)
    url = re.sub(r"\{(\w+)\}", lambda found: _variable(found[1]), path) + (f"?{query}" if query else "")
    parts = ["curl -s" if method == "GET" else f"curl -s -X {method}", f'"{HERE}{url}"']
    if guarded:
        parts.append('-H "X-API-Key: $KEY"')
    parts += [f'-H "{one.name}: {_variable(one.name)}"' for one in parameters if one.place == "header" and one.required]
    if body and body.example:
        parts.append('-H "Content-Type: application/json"')
        # Not shlex.quote: it would take a text without spaces out of its quotes.
        parts.append("-d '" + body.example.replace("'", "'\\''") + "'")
    return " ".join(parts[:2]) + "".join(f" \\\n  {part}" for part in parts[2:])


def _parameter(schemas: Schemas, given: Mapping[str, Any]) -> Parameter:
    schema = given.get("schema")
    return Parameter(
        name=given["name"],
        place=given["in"],
        type=schemas.type_of(schema),
        required=given.get("required", False),
        description=given.get("description") or description_of(schema),
        bounds=schemas.bounds_of(schema),
    )


def _body(schemas: Schemas, given: Mapping[str, Any]) -> Body:
    content = given.get("content", {}).get(_JSON, {})
    schema = content.get("schema")
    example = content.get("example") or next(_values(content), None) or schemas.example_of(schema, briefly=True)
    return Body(given.get("required", False), schemas.fields_of(schema), _pretty(example) if schema else "")


def _answer(schemas: Schemas, status: str, given: Mapping[str, Any]) -> Answer:
    content = given.get("content", {})
    json_content = content.get(_JSON, {})
    schema = json_content.get("schema")
    named = tuple(Example(name, _pretty(one.get("value"))) for name, one in json_content.get("examples", {}).items())
    made = (Example("", _pretty(schemas.example_of(schema))),) if schema else ()
    description = given.get("description", "")
    return Answer(
        status=status,
        description="" if description == _SAYS_NOTHING else description,
        kinds=tuple(content),
        fields=schemas.fields_of(schema) if status < "400" else (),
        examples=named or made,
    )


def _values(content: Mapping[str, Any]) -> Iterator[object]:
    for one in content.get("examples", {}).values():
        yield one.get("value")


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _anchor(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")


def _variable(name: str) -> str:
    """sessionId becomes $SESSION_ID."""
    return "$" + re.sub(r"\W+|(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()
