"""How a client program answers: a line per check, and "done" at the end."""

import itertools
import os
import sys
import time
import traceback

BOOTSTRAP = os.environ["BOOTSTRAP"]
RUN = str(time.time_ns())
# Milliseconds, for records with timestamps of their own: old ones would soon be deleted.
HOUR_AGO = int(time.time()) * 1000 - 3_600_000


COUNT = itertools.count()


def topic(name):
    """A name of its own for a topic, group or transactional id."""
    return f"{name}-{RUN}-{next(COUNT)}"


def report(name, error=None):
    if error is None:
        print(f"ok {name}", flush=True)
    else:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"FAIL {name}: {why}", flush=True)
        traceback.print_exception(error, file=sys.stderr)


def absent(name, why):
    print(f"n/a {name}: {why}", flush=True)


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")
