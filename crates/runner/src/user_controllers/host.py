"""Runs a user's controller class for Ackclock: one JSON array a line in, one JSON value a line out."""

import copy
import json
import os
import random
import sys
import types

REPORT = sys.argv[3].split(",")
LOSS = sys.argv[4].split(",")
answers = os.fdopen(os.dup(1), "w")
# What the user prints goes to the terminal, not between the answers.
os.dup2(2, 1)
requests = os.fdopen(os.dup(0), "r")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


class Values:
    def __init__(self, values):
        self.__dict__.update(zip(self.FIELDS, values))

    def __repr__(self):
        return f"<ackclock.{type(self).__name__} {self.__dict__}>"


class Report(Values):
    FIELDS = REPORT

    @property
    def cwnd_mss(self):
        return self.cwnd_bytes / self.mss_bytes

    @property
    def delivery_bps(self):
        return self.acked_bytes * 8 / self.interval_s if self.interval_s > 0 else 0.0


class Loss(Values):
    FIELDS = LOSS


class Controller:
    every = "rtt"
    reno_grows = False

    def on_start(self, report):
        return None

    def on_report(self, report):
        return None

    def on_loss(self, loss):
        return None


try:
    import ackclock
except ImportError:
    ackclock = types.ModuleType("ackclock")
    ackclock.Controller, ackclock.Report, ackclock.Loss = Controller, Report, Loss
    ackclock.register = lambda name, controller: controller
    sys.modules["ackclock"] = ackclock


def described(error):
    """The error in one line, with the innermost line of the user's file."""
    place = ""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == FILE:
            place = f" ({os.path.basename(FILE)}, line {frame.tb_lineno})"
        frame = frame.tb_next
    if isinstance(error, SyntaxError) and error.filename == FILE:
        place = f" ({os.path.basename(FILE)}, line {error.lineno})"
        return f"{place}: {type(error).__name__}: {error.msg}"
    return f"{place}: {type(error).__name__}: {error}"


def loaded():
    """The class, from a fresh run of the file: no world sees what another one left."""
    random.seed(0)
    module = types.ModuleType(NAME)
    module.__file__ = FILE
    sys.modules[NAME] = module
    exec(CODE, module.__dict__)
    found = module.__dict__.get(CLASS)
    if found is None:
        classes = [name for name, value in module.__dict__.items() if isinstance(value, type)]
        raise LookupError(f"no class {CLASS} in the file, which has {', '.join(classes) or 'none'}")
    return found


def answer(value):
    answers.write(json.dumps(value, allow_nan=False, default=float) + "\n")
    answers.flush()


FILE, CLASS = sys.argv[1], sys.argv[2]
NAME = os.path.splitext(os.path.basename(FILE))[0]
sys.path.insert(0, os.path.dirname(FILE))
alive = {}
kind = None
try:
    with open(FILE, "rb") as source:
        CODE = compile(source.read(), FILE, "exec")
    kind = loaded()
    answer({
        "every": getattr(kind, "every", "rtt"),
        "reno_grows": bool(getattr(kind, "reno_grows", False)),
        "names": dir(kind) if isinstance(kind, type) else ["on_report"],
    })
except BaseException as error:
    answer({"error": described(error)})
    sys.exit(0)

for line in requests:
    verb, number, argument = json.loads(line)
    try:
        if verb == "drop":
            alive.pop(number, None)
            continue
        if verb == "make":
            if not alive:
                kind = loaded()
            alive[number] = kind()
            result = None
        elif verb == "fork":
            alive[argument] = copy.deepcopy(alive[number])
            result = None
        else:
            hook = getattr(alive[number], verb, None)
            values = Loss(argument) if verb == "on_loss" else Report(argument)
            result = None if hook is None else hook(values)
        answer(result)
    except Exception as error:
        answer({"error": described(error)})
