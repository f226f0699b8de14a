#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks event lines against docs/schema/ with jsonschema's validator, and the sums that no schema can
state: attempted == emitted + every named loss, and no line longer than the limit.

  validate.py FILE...      each line of each file ("-": standard input); exits 1 when one is wrong
  validate.py --schemas    the schemas themselves: valid, complete, and able to refuse

It exits with 77 where the module jsonschema is missing. $TROCAR_SCHEMAS is a folder with more schemas.
"""
import copy
import itertools
import json
import os
import pathlib
import re
import sys

try:
    import jsonschema
except ModuleNotFoundError:
    if __name__ != "__main__":
        raise
    sys.exit(77)  # as meson has it: skipped

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "schema"
LINE_BYTES = 8192
UNACCOUNTED_NS = 100000  # of a thread that lived for milliseconds


def _inline(node, defs):
    """Replaces each reference into common.json by what it names: ten times faster to validate."""
    if isinstance(node, list):
        return [_inline(item, defs) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {**_inline(defs[node["$ref"].rsplit("/", 1)[1]], defs),
                **{key: _inline(value, defs) for key, value in node.items() if key != "$ref"}}
    return {key: _inline(value, defs) for key, value in node.items()}


def _flat(document, defs):
    """A type's schema with the keys of its shared parts among its own: six times faster to validate, because
    no key is looked for in each part. check_schemas() holds the samples against the schema as it is, too."""
    shared = [part for part in document.get("allOf", ()) if "$ref" in part]
    flat = {key: value for key, value in document.items() if key not in ("allOf", "unevaluatedProperties")}
    flat = _inline(flat, defs)
    flat["allOf"] = _inline([part for part in document.get("allOf", ()) if "$ref" not in part], defs)
    for part in _inline(shared, defs):
        flat["properties"] = {**part["properties"], **flat["properties"]}
        flat["required"] = [*part.get("required", ()), *flat["required"]]
    if "unevaluatedProperties" in document:
        flat["additionalProperties"] = document["unevaluatedProperties"]
    return flat


class Sound:
    """What was found to be right is not asked again: the same frame and the same value come in thousands of lines.
    Known by the schema that it was held against, which must live as long."""

    def __init__(self):
        self.known = set()
        self.validator = jsonschema.validators.extend(
            jsonschema.Draft202012Validator, {"items": self._items, "properties": self._properties})

    def _faults(self, validator, schema, value, path):
        key = (id(schema), repr(value))
        if key in self.known:
            return
        faults = list(validator.descend(value, schema, path=path))
        if not faults:
            self.known.add(key)
        yield from faults

    def _items(self, validator, items, instance, schema):
        if isinstance(instance, list):
            for index, item in enumerate(instance):
                yield from self._faults(validator, items, item, index)

    def _properties(self, validator, properties, instance, schema):
        if isinstance(instance, dict):
            for name in properties.keys() & instance.keys():
                value, about = instance[name], properties[name]
                if isinstance(value, (dict, list)):  # hardly ever the same twice
                    yield from validator.descend(value, about, path=name)
                else:
                    yield from self._faults(validator, about, value, name)


class Schemas:
    def __init__(self, folder=FOLDER):
        common = json.loads((folder / "common.json").read_text())
        more = os.environ.get("TROCAR_SCHEMAS")
        self.documents = {p.stem: json.loads(p.read_text())
                          for where in [folder, *([pathlib.Path(more)] if more else [])]
                          for p in sorted(where.glob("*.json")) if p.stem != "common"}
        sound = Sound()
        self.validators = {
            name: sound.validator(_flat(document, common["$defs"]))
            for name, document in self.documents.items()}
        self.common = common

    def faults(self, event):
        """What is wrong with one parsed line: a list of sentences, empty when nothing is."""
        kind = event.get("type") if isinstance(event, dict) else None
        if kind not in self.validators:
            return [f"type {kind!r} has no schema"]
        found = []
        for error in sorted(self.validators[kind].iter_errors(event), key=str):
            where = "/" + "/".join(str(part) for part in error.absolute_path)
            found.append(f"{kind} {where}: {error.message[:300]}")
        if not found and kind == "session.end":
            found = list(ledger_faults(event))
        elif not found and kind == "pool":
            found = list(account_faults(event))
        elif not found and kind == "timeline":
            found = list(timeline_faults(event))
        return found

    def line_faults(self, line, line_bytes=LINE_BYTES):
        """The same for a raw line (bytes, with its newline)."""
        if not line.endswith(b"\n"):
            return ["the line has no newline: it was cut"]
        if len(line) > line_bytes:
            return [f"{len(line)} bytes, more than {line_bytes}"]
        try:
            event = json.loads(line.decode("utf-8"), object_pairs_hook=_no_duplicates)
        except ValueError as error:
            return [f"not JSON: {error}: {line[:200]!r}"]
        return self.faults(event)


def _no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        raise ValueError(f"a key twice in {keys}")
    return dict(pairs)


def ledger_faults(event):
    for signal, entry in event["ledger"].items():
        lost = sum(entry["lost"].values())
        if entry["attempted"] != entry["emitted"] + lost:
            yield (f"session.end /ledger/{signal}: attempted {entry['attempted']} is not emitted "
                   f"{entry['emitted']} + lost {lost}")
        if entry["lost"].get("unaccounted", 0):
            yield f"session.end /ledger/{signal}: {entry['lost']['unaccounted']} unaccounted"
        for key in ("attempted", "emitted"):
            if "before" in entry and sum(entry[phase][key] for phase in ("before", "onset", "during")) != entry[key]:
                yield f"session.end /ledger/{signal}: before + onset + during {key} is not {entry[key]}"
        if event["verdict"] == "complete" and lost:
            yield f"session.end /verdict: complete, but {lost} of {signal} lost"


def account_faults(event):
    """wall = running + queue + blocked + unaccounted, and of the last one hundredth at most."""
    parts = event["running_ns"] + event["queue_ns"] + sum(event["blocked_ns"].values()) + event["unaccounted_ns"]
    if event["wall_ns"] != parts:
        yield f"pool /wall_ns: {event['wall_ns']} is not {parts}, the sum of its parts"
    if event["unaccounted_ns"] > max(event["wall_ns"] // 100, UNACCOUNTED_NS * event["threads"]):
        yield f"pool /unaccounted_ns: {event['unaccounted_ns']} of {event['wall_ns']}"


def timeline_faults(event):
    """Each row has a number for each slot, and the trigger lies in them or right behind."""
    rows = {"looks": event["looks"], **{k: event[k] for k in ("running", "queue") if k in event}, **event["blocked"]}
    for name, row in rows.items():
        if len(row) != event["slots"]:
            yield f"timeline /{name}: {len(row)} numbers, not {event['slots']}"
    if event["slots_before"] > event["slots"]:
        yield f"timeline /slots_before: {event['slots_before']} of {event['slots']}"


def evidence_faults(events):
    """Each finding of a complete session rests on lines of it, and what no finding explains is said."""
    for end in events:
        if end.get("type") != "session.end" or "findings" not in end or end["verdict"] != "complete":
            continue
        lines = [event for event in events if event.get("session") == end["session"]]
        plain = [{k: v for k, v in line.items() if not isinstance(v, (dict, list))}.items() for line in lines]
        rests = [(selector, finding["cause"]) for finding in end["findings"] for selector in finding["evidence"]]
        rests += [(link["evidence"], f"chain {line['chain']}") for line in lines if line["type"] == "chain"
                  for link in line["links"] if "evidence" in link]
        for selector, what in rests:
            if not any(selector.items() <= line for line in plain):
                yield f"session.end /findings: no line of its session is {selector}, on which {what} rests"
        explained = sum(one["explains_ms"] for one in end["findings"] if one["of"] == "waiting")
        left = end["unexplained"] * end["waited_ms"]
        if explained + left < 0.98 * end["waited_ms"] - 5 * len(end["findings"]):
            yield f"session.end /unexplained: {end['findings']}, {end['unexplained']} of {end['waited_ms']} ms"


def check_schemas():
    """The schemas are schemas, cover exactly the types of docs/events.md, and refuse what is wrong."""
    schemas = Schemas()
    found = []
    for name, document in {**schemas.documents, "common": schemas.common}.items():
        try:
            jsonschema.Draft202012Validator.check_schema(document)
        except jsonschema.SchemaError as error:
            found.append(f"docs/schema/{name}.json: {error.message}")
    page = (ROOT / "docs" / "events.md").read_text()
    stated = set(re.findall(r"^\*\*([a-z.]+)\*\*", page, re.M))
    for name in stated ^ set(schemas.documents):
        found.append(f"docs/events.md and docs/schema/ disagree about the type {name}")
    good = json.loads((ROOT / "tests" / "e2e" / "samples.json").read_text())
    for name in set(schemas.documents) ^ {event["type"] for event in good}:
        found.append(f"tests/e2e/samples.json: no sample of {name}, or one too many")
    for event in good:
        found += [f"tests/e2e/samples.json: {fault}" for fault in schemas.faults(event)]
        published = jsonschema.Draft202012Validator(
            _inline(schemas.documents[event["type"]], schemas.common["$defs"]))
        found += [f"tests/e2e/samples.json: {event['type']} as published: {error.message}"
                  for error in published.iter_errors(event)]
        found += [f"{event['type']} as published: accepted {what}"
                  for what, bad in itertools.islice(spoilt(event), 1) if published.is_valid(bad)]
        found += [f"{event['type']}: accepted {what}"
                  for what, bad in spoilt(event) if not schemas.faults(bad)]
    return found


def spoilt(event):
    """Ways to break a good event, each of which its schema must refuse."""
    bad = copy.deepcopy(event)
    bad["surprise"] = 1
    yield "a key that nobody stated", bad
    for key in ("ts", "mono_ns", "boot_id"):
        bad = copy.deepcopy(event)
        del bad[key]
        yield f"a line without {key}", bad
    bad = copy.deepcopy(event)
    bad["ts"] = "2026-01-01 00:00:00"
    yield "a ts that is not RFC 3339", bad
    if event["type"] == "session.end":
        bad = copy.deepcopy(event)
        next(iter(bad["ledger"].values()))["attempted"] += 1
        yield "a ledger that does not add up", bad
    if event["type"] == "pool":
        bad = copy.deepcopy(event)
        bad["wall_ns"] += 1
        yield "an account that does not close", copy.deepcopy(bad)
        bad["wall_ns"] = event["wall_ns"] + 10**9
        bad["unaccounted_ns"] = event["unaccounted_ns"] + 10**9
        yield "a second unaccounted", copy.deepcopy(bad)
    if event["type"] == "timeline":
        bad = copy.deepcopy(event)
        bad["looks"].append(0)
        yield "a row with a number too many", copy.deepcopy(bad)
        bad = copy.deepcopy(event)
        bad["slots_before"] = event["slots"] + 1
        yield "a trigger behind the end", copy.deepcopy(bad)


def main(arguments):
    found = []
    if arguments == ["--schemas"]:
        found = check_schemas()
    elif not arguments:
        sys.exit(__doc__)
    else:
        schemas = Schemas()
        for name in arguments:
            with (sys.stdin.buffer if name == "-" else open(name, "rb")) as stream:
                for number, line in enumerate(stream, 1):
                    found += [f"{name}:{number}: {f}" for f in schemas.line_faults(line)]
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
