"""The reference's model: what odd schemas become, and what is made where the document says nothing."""

import json
import shlex
from typing import Any

import pytest

from switchboard.dashboard.api.document import HERE, Operation, operation_of, reference_of
from switchboard.dashboard.api.schemas import Schemas, schemas_of

NODE = {"title": "Node", "type": "object", "properties": {"next": {"$ref": "#/x/Node"}, "at": {"type": "integer"}}}
SCHEMAS = Schemas({"Node": NODE, "Level": {"enum": ["cold", "hot"], "type": "string"}}, {"phone": "972501234567"})


def operation(method: str = "get", path: str = "/things", **given: Any) -> Operation:
    return operation_of(SCHEMAS, method, path, given)


def with_body(schema: object) -> Operation:
    return operation("post", requestBody={"content": {"application/json": {"schema": schema}}})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (None, "any"),
        (True, "any"),
        ({}, "any"),
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date"}, "string (date)"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer | null"),
        ({"oneOf": [{"type": "integer"}, {"$ref": "#/x/Node"}]}, "integer | Node"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"const": "a"}, '"a"'),
        ({"$ref": "#/x/Node"}, "Node"),
        ({"$ref": "#/x/Level"}, '"cold" | "hot"'),
        ({"$ref": "#/x/Nobody"}, "any"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": {"$ref": "#/x/Node"}}, "Node[]"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "(string | null)[]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "{*: integer}"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"allOf": [{"$ref": "#/x/Node"}]}, "any"),
    ],
)
def test_a_type_in_signs(schema: object, said: str) -> None:
    assert SCHEMAS.type_of(schema) == said


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        (None, {}),
        ({}, {}),
        ({"type": "string", "examples": ["x"]}, "x"),
        ({"type": "string", "example": "y"}, "y"),
        ({"type": "string", "format": "date"}, "2026-11-15"),
        ({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 7}]}, 7),
        ({"type": ["null", "string"]}, "string"),
        ({"type": "null"}, None),
        ({"type": "integer", "default": 0}, 0),
        ({"oneOf": [{"type": "boolean"}, {"type": "string"}]}, True),
        ({"enum": ["a", "b"]}, "a"),
        ({"const": "a"}, "a"),
        ({"type": "array", "items": {"type": "number"}}, [1]),
        ({"type": "array"}, []),
        ({"properties": {"phone": {"type": "string"}}}, {"phone": "972501234567"}),
        ({"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]}, {"a": 1, "b": 2}),
    ],
)
def test_an_example_for_everything(schema: object, example: object) -> None:
    assert SCHEMAS.example_of(schema) == example


def test_a_schema_that_holds_itself_ends() -> None:
    names = [field.name for field in SCHEMAS.fields_of({"$ref": "#/x/Node"})]
    assert names == ["next", "next.next", "next.next.next", "next.next.at", "next.at", "at"]
    json.dumps(SCHEMAS.example_of({"$ref": "#/x/Node"}))
    loop = Schemas({"A": {"$ref": "#/x/B"}, "B": {"$ref": "#/x/A"}})
    assert loop.resolve({"$ref": "#/x/A"}) == {}


def test_fields_within_lists_and_what_may_be_null_are_told_by_their_path() -> None:
    row = {
        "title": "Row",
        "properties": {"to": {"type": "string", "maxLength": 40, "description": "Whom"}},
        "required": ["to"],
    }
    listed = {"anyOf": [{"type": "array", "items": row}, {"type": "null"}]}
    rows, to = SCHEMAS.fields_of({"properties": {"rows": listed}})
    assert (rows.name, rows.type, rows.required) == ("rows", "Row[] | null", False)
    assert (to.name, to.description, to.bounds, to.required) == ("rows[].to", "Whom", "maxLength 40", True)


def test_one_of_several_names_is_marked_and_only_one_is_in_the_example() -> None:
    schema = {
        "properties": {name: {"type": "string"} for name in ("to", "text", "message", "note")},
        "required": ["to"],
        "oneOf": [{"required": ["text"]}, {"required": ["message"]}],
    }
    assert [field.name for field in SCHEMAS.fields_of(schema) if field.choice] == ["text", "message"]
    assert set(SCHEMAS.example_of(schema, briefly=True)) == {"to", "text"}  # type: ignore[call-overload]
    assert set(SCHEMAS.example_of(schema)) == {"to", "text", "note"}  # type: ignore[call-overload]


def test_the_fields_of_all_that_it_may_be() -> None:
    kinds: list[Any] = [{"properties": {"a": {}, "b": {}}}, {"properties": {"b": {}, "c": {}}}]
    assert [field.name for field in SCHEMAS.fields_of({"oneOf": kinds})] == ["a", "b", "c"]


def test_names_are_learnt_from_the_documents_own_examples() -> None:
    schema = {"examples": [{"to": "1"}], "properties": {"hours": {"examples": ["07:00-23:00"]}, "odd": True}}
    assert schemas_of({"components": {"schemas": {"A": schema}}}).known == {"to": "1", "hours": "07:00-23:00"}


def test_a_document_without_anything_is_an_empty_reference() -> None:
    assert reference_of({}).groups == ()


def test_what_is_no_method_is_no_call() -> None:
    document = {"paths": {"/x": {"parameters": [], "summary": "…", "get": {"tags": ["a"]}, "post": {}}}}
    assert [(group.name, len(group.operations)) for group in reference_of(document).groups] == [("a", 1), ("", 1)]


def test_a_call_that_says_nothing_about_itself() -> None:
    bare = operation(responses={"200": {"description": "Successful Response"}})
    assert (bare.id, bare.summary, bare.guarded, bare.scope, bare.body) == ("get_-things", "", False, "", None)
    assert (bare.answers[0].description, bare.answers[0].examples, bare.answers[0].fields) == ("", (), ())
    assert bare.command == f'curl -s "{HERE}/things"'


def test_a_body_without_a_schema_is_not_invented() -> None:
    assert operation("post", requestBody={"content": {"text/csv": {}}}).body.example == ""  # type: ignore[union-attr]


def test_a_body_that_may_be_left_out() -> None:
    body = with_body({"anyOf": [{"properties": {"until": {"type": "string"}}}, {"type": "null"}]}).body
    assert body
    assert not body.required
    assert [field.name for field in body.fields] == ["until"]


def test_a_command_is_one_for_the_shell() -> None:
    made = operation_of(
        SCHEMAS,
        "put",
        "/sessions/{sessionId}",
        {
            "security": [{"apiKey": []}],
            "parameters": [
                {"name": "sessionId", "in": "path", "required": True},
                {"name": "by", "in": "query", "required": True},
                {"name": "limit", "in": "query"},
                {"name": "If-Match", "in": "header", "required": True},
            ],
            "requestBody": {"content": {"application/json": {"schema": {"examples": [{"text": "it's"}]}}}},
        },
    )
    words = [word for word in shlex.split(made.command) if word != "\n"]
    assert words[:5] == ["curl", "-s", "-X", "PUT", f"{HERE}/sessions/$SESSION_ID?by=$BY"]
    assert words[5:11] == ["-H", "X-API-Key: $KEY", "-H", "If-Match: $IF_MATCH", "-H", "Content-Type: application/json"]
    assert json.loads(words[-1]) == {"text": "it's"}
