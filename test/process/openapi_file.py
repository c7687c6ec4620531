"""src/api/openapi.yaml as a test sees it: is it valid, and does an answer of the server match what it says?

Apart from openapi_test.py because this half knows nothing of a running server. The file is validated by the schema that
the OpenAPI Initiative has published for version 3.0 (Debian's package openapi-specification). Unlike that of 3.1 it
refuses unknown keys in schemas, too. What a schema cannot tell (dangling references, operation ids that occur twice,
examples that do not match) is checked here. Needs Debian's python3-jsonschema and python3-yaml.
"""
import datetime
import json
import os

import jsonschema
import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(HERE, "../../src/api/openapi.yaml")
SPECIFICATION = "/usr/share/openapi-specification/schemas/v3.0/schema.json"
METHODS = ("get", "head", "post", "put", "delete", "patch", "options", "trace")
FORMATS = jsonschema.FormatChecker(formats=())


@FORMATS.checks("date-time")
def is_time(text):
    """RFC 3339 in UTC with microseconds, as docs/http-api.md promises: narrower than the format's own rule."""
    if not isinstance(text, str):
        return True
    try:
        datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
    except ValueError:
        return False
    return len(text) == len("2026-11-15T21:40:46.123456Z")


class _Loader(yaml.SafeLoader):
    """YAML as strict as JSON: a key twice is an error, and a time is a text."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if not isinstance(key, str):
                raise yaml.YAMLError(f"{node.start_mark}: the key {key!r} is no text")
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"{node.start_mark}: the key {key!r} occurs twice")
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def faults_of(instance, schema):
    """Why an instance does not match a schema, each fault with its place; empty if it does."""
    validator = jsonschema.Draft4Validator(schema, format_checker=FORMATS)
    return ["/".join(map(str, error.absolute_path)) + ": " + error.message[:300]
            for error in map(_deepest, validator.iter_errors(instance))]


def _deepest(error):
    """Of a fault and what led to it (the choices of an anyOf), the one that says best where to look."""
    return max([error, *map(_deepest, error.context or [])], key=lambda one: len(one.absolute_path))


class Description:
    """The file, with everything that it refers to in place.

    An object of an answer is *closed*: it may have only the fields that are described, unless the file says
    additionalProperties itself. So a field that nobody has documented is a fault. Requests stay open: the server
    ignores fields that it does not know.
    """

    def __init__(self, text=None):
        if text is None:
            with open(PATH, encoding="utf-8") as file:
                text = file.read()
        self.raw = yaml.load(text, _Loader)
        self.used = set()

    def faults(self):
        """Everything that makes the file invalid."""
        with open(SPECIFICATION, encoding="utf-8") as file:
            found = faults_of(self.raw, json.load(file))
        if found:
            return found  # what follows relies on the form
        found += self._dangling(self.raw, "")
        if found:
            return found
        found += self._names() + self._examples()
        self._resolve(self.raw["paths"])
        for kind, entries in self.raw["components"].items():
            if kind != "securitySchemes":
                found += [f"nothing uses components/{kind}/{name}" for name in entries
                          if f"#/components/{kind}/{name}" not in self.used]
        return found

    def operations(self):
        """(path, METHOD) -> the operation, references resolved."""
        return {(path, method.upper()): self._resolve(item[method])
                for path, item in self.raw["paths"].items() for method in METHODS if method in item}

    def component(self, name):
        return self._resolve({"$ref": f"#/components/schemas/{name}"})

    def _target(self, reference):
        value = self.raw
        for key in reference.removeprefix("#/").split("/"):
            value = value[key]
        return value

    def _dangling(self, value, where):
        found = []
        if isinstance(value, dict):
            if "$ref" in value:
                try:
                    self._target(value["$ref"])
                except (KeyError, TypeError):
                    found.append(f"{where}: there is no {value['$ref']}")
                if len(value) > 1:
                    found.append(f"{where}: readers ignore what stands beside a $ref")
            for key, inner in value.items():
                found += self._dangling(inner, f"{where}/{key}")
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                found += self._dangling(inner, f"{where}/{i}")
        return found

    def _names(self):
        found = []
        ids = [operation["operationId"] for operation in self.operations().values() if "operationId" in operation]
        found += [f"the operationId {name} occurs twice" for name in sorted(set(ids)) if ids.count(name) > 1]
        tags = {tag["name"] for tag in self.raw["tags"]}
        for (path, method), operation in self.operations().items():
            found += [f"{method} {path}: there is no tag {tag}" for tag in operation.get("tags", []) if tag not in tags]
            if "operationId" not in operation and method != "HEAD":
                found.append(f"{method} {path} has no operationId")
        return found

    def _examples(self):
        """Every example must match its schema, closed: an example with a field that does not exist misleads."""
        found = []
        for (path, method), operation in self.operations().items():
            places = {"request": operation.get("requestBody", {}), **operation["responses"]}
            for place, body in places.items():
                for kind, content in body.get("content", {}).items():
                    for name, example in content.get("examples", {}).items():
                        found += [f"{method} {path} {place} example {name}: {fault}"
                                  for fault in self._example_faults(kind, content, example["value"])]
        return found

    def _example_faults(self, kind, content, value):
        if kind != "text/event-stream":
            return faults_of(value, closed(content["schema"]))
        found = faults_of(value, content["schema"])
        for line in value.splitlines():
            if line.startswith("data: "):
                found += faults_of(json.loads(line[len("data: "):]), closed(content["x-data-schema"]))
        return found

    def _resolve(self, value):
        """A copy without references; a component's schema keeps its name as `x-name`."""
        if isinstance(value, list):
            return [self._resolve(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        if "$ref" not in value:
            return {key: self._resolve(inner) for key, inner in value.items()}
        self.used.add(value["$ref"])
        target = self._resolve(self._target(value["$ref"]))
        if "/schemas/" in value["$ref"]:
            target = {"x-name": value["$ref"].rsplit("/", 1)[1], **target}
        return target


def merged(schema):
    """allOf and its parts as one object, so that it can be closed."""
    if "allOf" not in schema:
        return schema
    whole = {key: value for key, value in schema.items() if key not in ("allOf", "properties", "required")}
    parts = [merged(part) for part in schema["allOf"]] + [schema]
    whole["type"] = "object"
    whole["properties"] = {name: {"x-owner": part["x-name"], **inner} if "x-name" in part else inner
                           for part in parts for name, inner in part.get("properties", {}).items()}
    whole["required"] = sorted({name for part in parts for name in part.get("required", [])})
    if not whole["required"]:
        del whole["required"]
    return whole


def described(schema, place):
    """Every field and every value of an enumeration that a schema has: (place, field) and (place, field, value)."""
    place = schema.get("x-name", place)
    schema = merged(schema)
    found = set()
    for choice in schema.get("anyOf", []):
        found |= described(choice, place)
    for name, inner in schema.get("properties", {}).items():
        owner = inner.get("x-owner", place)
        found |= {(owner, name)} | {(owner, name, value) for value in inner.get("enum", [])}
        found |= described(inner, f"{owner}.{name}")
    return found | (described(schema["items"], place) if "items" in schema else set())


def seen_in(value, schema, place):
    """Those of described(schema, place) that a value, which matches the schema, has."""
    place = schema.get("x-name", place)
    schema = merged(schema)
    found = set()
    for choice in schema.get("anyOf", []):
        if not faults_of(value, closed(choice)):
            found |= seen_in(value, choice, place)
    for name, inner in schema.get("properties", {}).items():
        if name not in value:
            continue
        owner = inner.get("x-owner", place)
        found |= {(owner, name)} | ({(owner, name, value[name])} if "enum" in inner else set())
        found |= seen_in(value[name], inner, f"{owner}.{name}")
    if "items" in schema:
        for item in value:
            found |= seen_in(item, schema["items"], place)
    return found


def closed(schema):
    """The schema (references resolved), so that an object may have only the fields that it describes."""
    schema = dict(merged(schema))
    if "properties" in schema:
        schema["properties"] = {name: closed(inner) for name, inner in schema["properties"].items()}
        schema.setdefault("additionalProperties", False)
    if "items" in schema:
        schema["items"] = closed(schema["items"])
    for choice in "oneOf", "anyOf":
        if choice in schema:
            schema[choice] = [closed(inner) for inner in schema[choice]]
    return schema
