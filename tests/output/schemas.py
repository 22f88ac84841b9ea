"""Schemas of docs/schemas, and how they are checked."""

import copy
import json
import pathlib

import jsonschema

# Ubuntu 22.04 has a package that knows no newer draft. The schemas use only what both mean alike.
Validator = getattr(jsonschema, "Draft202012Validator", jsonschema.Draft7Validator)
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/schemas"


def all_schemas():
    """Returns each schema by its name: `run` is docs/schemas/run.schema.json."""
    return {file.name.split(".")[0]: json.loads(file.read_text()) for file in sorted(FOLDER.glob("*.schema.json"))}


def problems(schema, document):
    """Returns what the schema refuses, a line each."""
    return [
        f"{'/'.join(map(str, error.absolute_path)) or '.'}: {error.message[:300]}"
        for error in Validator(schema).iter_errors(document)
    ]


def refuses(schema, document):
    """Returns whether the schema refuses the document. Faster than `problems`: it ends with the first."""
    return not Validator(schema).is_valid(document)


def resolved(schema, part):
    """Follows references into $defs."""
    while "$ref" in part:
        part = schema["$defs"][part["$ref"].rsplit("/", 1)[1]]
    return part


def places(schema, part, document, path=(), seen=None):
    """Yields (path, schema) of the objects in the document that have keys in the schema: one for each of its parts."""
    seen = set() if seen is None else seen
    part = resolved(schema, part)
    for choice in part.get("anyOf", []):
        if Validator({**choice, "$defs": schema.get("$defs", {})}).is_valid(document):
            part = resolved(schema, choice)
            break
    if isinstance(document, list) and "items" in part:
        for index, item in enumerate(document[:2]):
            yield from places(schema, part["items"], item, (*path, index), seen)
    elif isinstance(document, dict) and "properties" in part:
        if id(part) in seen:
            return
        seen.add(id(part))
        yield path, part
        for key, value in document.items():
            yield from places(schema, part["properties"][key], value, (*path, key), seen)
    elif isinstance(document, dict) and isinstance(part.get("additionalProperties"), dict):
        for key, value in list(document.items())[:1]:
            yield from places(schema, part["additionalProperties"], value, (*path, key), seen)


def changed(document, path, change):
    """Returns a copy in which `change` was applied to the object at `path`."""
    document = copy.deepcopy(document)
    at = document
    for key in path:
        at = at[key]
    change(at)
    return document


def wrong_type(value):
    """Returns a value of a type that the property does not have."""
    return [] if isinstance(value, (str, bool, dict)) or value is None else "text"


def mutants(schema, document):
    """Yields (what was changed, document) for changes that the schema must refuse."""
    for path, part in places(schema, schema, document):
        name = "/".join(map(str, path)) or "."
        at = document
        for key in path:
            at = at[key]
        yield f"{name}: a key is unknown", changed(document, path, lambda one: one.update(invented=1))
        for key in part["required"]:
            yield f"{name}: {key} is missing", changed(document, path, lambda one, key=key: one.pop(key))
        for key, value in at.items():
            wrong = 1.5 if isinstance(value, list) else wrong_type(value)
            yield (
                f"{name}: {key} has a wrong type",
                changed(document, path, lambda one, key=key, wrong=wrong: one.update({key: wrong})),
            )
