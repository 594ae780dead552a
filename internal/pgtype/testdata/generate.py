#!/usr/bin/env python3
"""Writes the golden files of internal/pgtype and internal/decimal again from a PostgreSQL 15 (UTF-8, "C" collation).

Connects with psql and its usual variables (PGHOST, PGPORT, PGUSER). Inputs are those of the files that are there; add a line with any answer
to have it asked. Files are in COPY's text format:
  text.golden, random.golden        time zone, type, input, text output or "ERROR sqlstate message"
  binary.golden                     type, input, output of the type's send function in hex
  jsonb_order, array_order.golden   a, b, -1, 0 or 1
  ../../decimal/testdata/numeric.golden   operation, a, b, answer
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DECIMAL = os.path.join(HERE, "..", "..", "decimal", "testdata")

FUNCTIONS = """
create or replace function pg_temp.try(e text) returns text language plpgsql as $$
declare r text;
begin execute 'select (' || e || ')::text' into r; return r;
exception when others then return 'ERROR ' || sqlstate || ' ' || sqlerrm; end $$;
create or replace function pg_temp.try_in(zone text, e text) returns text language plpgsql as $$
begin perform set_config('timezone', zone, false); return pg_temp.try(e); end $$;
"""

SEND = {
    "boolean": "boolsend", "smallint": "int2send", "integer": "int4send", "bigint": "int8send", "real": "float4send",
    "double precision": "float8send", "numeric": "numeric_send", "date": "date_send", "time": "time_send",
    "timestamp": "timestamp_send", "timestamptz": "timestamptz_send", "interval": "interval_send", "jsonb": "jsonb_send",
    "text": "textsend", "bytea": "byteasend",
}

CALLS = {
    "ceil", "floor", "sqrt", "exp", "ln", "abs", "sign", "trim_scale",
}


def ask(path, setup, select, columns):
    """Loads the file's rows into a table t, runs select over it and writes the answer to the file."""
    with open(path, encoding="utf-8") as f:
        rows = f.read()
    sql = FUNCTIONS + setup + f"create temp table t (id serial, {columns});\n"
    names = ", ".join(c.split()[0] for c in columns.split(", "))
    sql += f"copy t ({names}) from stdin;\n{rows}\\.\ncopy ({select} order by id) to stdout;\n"
    r = subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1"], input=sql, capture_output=True, text=True, check=False)
    if r.returncode:
        sys.exit(f"{path}: {r.stderr}")
    with open(path, "w", encoding="utf-8") as f:
        f.write(r.stdout)


def case(pairs, otherwise):
    return "case op " + " ".join(f"when '{k}' then {v}" for k, v in pairs) + f" else {otherwise} end"


def main():
    for name in ("text.golden", "random.golden"):
        ask(os.path.join(HERE, name), "",
            "select zone, typ, inp, pg_temp.try_in(zone, format('%L::%s', inp, typ)) from t",
            "zone text, typ text, inp text, answer text")
    sends = " ".join(f"when '{k}' then '{v}'" for k, v in SEND.items())
    ask(os.path.join(HERE, "binary.golden"), "set timezone = 'UTC';",
        f"select typ, inp, pg_temp.try(format('encode(%s(%L::%s), ''hex'')', case typ {sends} else 'array_send' end, inp, typ)) from t",
        "typ text, inp text, answer text")
    for name, typ in (("jsonb_order.golden", "jsonb"), ("array_order.golden", "text[]")):
        ask(os.path.join(HERE, name), "",
            f"select a, b, case when a::{typ} < b::{typ} then -1 when a::{typ} = b::{typ} then 0 else 1 end from t",
            "a text, b text, answer text")
    pairs = [(op, f"format('%L::numeric {op.replace('%', '%%')} %L::numeric', a, b)") for op in "+-*/%<="]
    pairs += [(op, f"format('{op}(%L::numeric)', a)") for op in sorted(CALLS)]
    pairs += [(op, f"format('%L::numeric::{op}', a)") for op in ("float8", "int8", "int4")]
    pairs += [("fromfloat8", "format('%L::float8::numeric', a)"), ("fromfloat4", "format('%L::float4::numeric', a)")]
    pairs += [("log10", "format('log(%L::numeric)', a)"), ("round", "format('round(%L::numeric, %s)', a, b)"),
              ("trunc", "format('trunc(%L::numeric, %s)', a, b)")]
    ask(os.path.join(DECIMAL, "numeric.golden"), "",
        "select op, a, b, pg_temp.try(" + case(pairs, "format('%s(%L::numeric, %L::numeric)', op, a, b)") + ") from t",
        "op text, a text, b text, answer text")


if __name__ == "__main__":
    main()
