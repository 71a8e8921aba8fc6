"""What a JSON schema of the API's document means to a reader: a type in one line, the fields in it, an example.

Types are written in signs, not in words, so that they read the same in every language: `string[] | null`.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = Mapping[str, Any]

_DEPTH = 2
"""How far into a field its own fields are shown. Deeper, and a schema that holds itself would never end."""

_BOUNDS = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern", "default")
_BY_FORMAT = {"date-time": "2026-11-15T09:30:00Z", "date": "2026-11-15", "uri": "https://example.com/"}
_BY_TYPE: Mapping[str, object] = {"integer": 1, "number": 1, "boolean": True, "null": None, "string": "string"}


@dataclass(frozen=True, slots=True)
class Field:
    """`name` is its path: `messages[].to`. `choice`: needed, unless another one so marked is given."""

    name: str
    type: str
    required: bool
    choice: bool
    description: str
    bounds: str


@dataclass(frozen=True, slots=True)
class Schemas:
    """The named schemas of a document, and what its own examples call things."""

    named: Mapping[str, Schema] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, schema: object) -> Schema:
        """The schema itself: not a reference to it, nor one of several parts, nor "it, or null"."""
        for _ in range(10):
            if not isinstance(schema, Mapping):
                return {}
            if "$ref" in schema:
                schema = self.named.get(_name(schema), {})
            elif "properties" not in schema and len(kinds := _alternatives(schema)) == 1:
                schema = {key: value for key, value in schema.items() if key not in _SEVERAL} | dict(kinds[0])
            else:
                return self._together(schema) if "allOf" in schema else schema
        return {}

    def _together(self, schema: Schema) -> Schema:
        parts = [{key: value for key, value in schema.items() if key != "allOf"}, *map(self.resolve, schema["allOf"])]
        merged: dict[str, Any] = {}
        for part in parts:
            merged |= part
        merged["properties"] = {name: of for part in parts for name, of in part.get("properties", {}).items()}
        merged["required"] = [name for part in parts for name in part.get("required", ())]
        return merged if merged["properties"] else {k: v for k, v in merged.items() if k != "properties"}

    def type_of(self, schema: object) -> str:
        """In signs: `"cold" | "hot"`, `string (date)`, `BatchRow[]`, `{*: integer}`, `any`."""
        if not isinstance(schema, Mapping):
            return "any"
        if "$ref" in schema:
            target = self.resolve(schema)
            return _name(schema) if _is_object(target) else self.type_of(target)
        if "const" in schema or "enum" in schema:
            return " | ".join(map(_json, schema.get("enum", [schema.get("const")])))
        if "properties" not in schema and (kinds := _options(schema)):
            return " | ".join(dict.fromkeys(self.type_of(kind) for kind in kinds))
        given = schema.get("type")
        if isinstance(given, list):
            return " | ".join(self.type_of({**schema, "type": one}) for one in given)
        if given == "array" or "items" in schema:
            inner = self.type_of(schema.get("items"))
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        if _is_object(schema) and isinstance(schema.get("additionalProperties"), Mapping):
            return f"{{*: {self.type_of(schema['additionalProperties'])}}}"
        if _is_object(schema):
            return str(schema.get("title", "object")) if "properties" in schema else "object"
        return f"{given} ({schema['format']})" if given and "format" in schema else str(given or "any")

    def fields_of(self, schema: object) -> tuple[Field, ...]:
        """Those of an object, of the objects in a list, or of all that it may be."""
        return tuple(self._fields(schema, "", _DEPTH))

    def _fields(self, schema: object, path: str, depth: int) -> Iterator[Field]:
        whole = self.resolve(schema)
        if whole.get("type") == "array":
            yield from self._fields(whole.get("items"), f"{path}[]", depth)
            return
        seen: set[str] = set()
        for one in [whole] if "properties" in whole else map(self.resolve, _alternatives(whole)):
            choices = {name for rule in _options(one) for name in rule.get("required", ())}
            for name, inner in one.get("properties", {}).items():
                if name in seen:
                    continue
                seen.add(name)
                here = f"{path}.{name}" if path else name
                yield Field(
                    name=here,
                    type=self.type_of(inner),
                    required=name in one.get("required", ()),
                    choice=name in choices,
                    description=description_of(inner) or description_of(self.resolve(inner)),
                    bounds=self.bounds_of(inner),
                )
                if depth > 0:
                    yield from self._fields(inner, here, depth - 1)

    def bounds_of(self, schema: object) -> str:
        """By the schema's own words: `maxLength 40`."""
        found = self.resolve(schema)
        return " · ".join(f"{name} {_json(found[name])}" for name in _BOUNDS if found.get(name) not in (None, ""))

    def example_of(self, schema: object, *, briefly: bool = False, name: str = "", depth: int = 5) -> object:
        """The document's own, or one made from what it says. `briefly`: only what must be there, if anything must."""
        found = self.resolve(schema)
        for given in (found.get("examples"), [found["example"]] if "example" in found else None, found.get("enum")):
            if given:
                return given[0]
        if found.get("const", found.get("default")) is not None:
            return found.get("const", found.get("default"))
        if "properties" in found:
            return self._object(found, briefly, depth) if depth else {}
        if kinds := _alternatives(found):
            return self.example_of(kinds[0], briefly=briefly, name=name, depth=depth)
        return self._plain(found, briefly, name, depth)

    def _object(self, schema: Schema, briefly: bool, depth: int) -> dict[str, object]:
        needed = set(schema.get("required", ()))
        choices = [set(rule.get("required", ())) for rule in _options(schema)]
        wanted = needed | choices[0] if choices else needed
        refused = {name for choice in choices[1:] for name in choice} - wanted
        return {
            name: self.example_of(inner, briefly=briefly, name=name, depth=depth - 1)
            for name, inner in schema["properties"].items()
            if (name in wanted if briefly and wanted else name not in refused)
        }

    def _plain(self, schema: Schema, briefly: bool, name: str, depth: int) -> object:
        given = schema.get("type")
        kind = next((one for one in given if one != "null"), "null") if isinstance(given, list) else given
        if kind == "array" or "items" in schema:
            inner = schema.get("items")
            return [self.example_of(inner, briefly=briefly, name=name, depth=depth - 1)] if depth and inner else []
        if kind == "string":
            return _BY_FORMAT.get(schema.get("format", "")) or self.known.get(name) or "string"
        if kind in {"integer", "number"}:
            return max(1, int(schema.get("minimum", 1)))
        return _BY_TYPE.get(kind) if isinstance(kind, str) and kind != "object" else {}


def schemas_of(document: Mapping[str, Any]) -> Schemas:
    named = document.get("components", {}).get("schemas", {})
    known: dict[str, str] = {}
    for schema in named.values():
        for name, value in _examples_in(schema):
            known.setdefault(name, value)
    return Schemas(named, known)


def description_of(schema: object) -> str:
    return str(schema.get("description", "")) if isinstance(schema, Mapping) else ""


_SEVERAL = ("anyOf", "oneOf")


def _options(schema: Schema) -> list[Schema]:
    return [kind for key in _SEVERAL for kind in schema.get(key, ()) if isinstance(kind, Mapping)]


def _alternatives(schema: Schema) -> list[Schema]:
    return [kind for kind in _options(schema) if kind.get("type") != "null"]


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _examples_in(schema: Schema) -> Iterator[tuple[str, str]]:
    """What the examples of an object and of its fields call things, by the names of the fields."""
    for example in schema.get("examples", ()):
        if isinstance(example, Mapping):
            yield from ((name, value) for name, value in example.items() if isinstance(value, str))
    for name, inner in schema.get("properties", {}).items():
        for example in inner.get("examples", ()) if isinstance(inner, Mapping) else ():
            if isinstance(example, str):
                yield name, example
