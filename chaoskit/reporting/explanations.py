"""What each kind of finding means, how it comes about, and how it is mended.

The numbers of cases are those that `chaoskit gallery` names: real failures of real programs.
"""

from __future__ import annotations

from typing import NamedTuple

from chaoskit.model.findings import FINDING_KINDS


class Explanation(NamedTuple):
    """A kind of finding, explained.

    ``how`` it comes about, in a sentence; ``example``: five lines of a task that shows it, with the
    place of the kill; ``mend``: what to change; ``cases``: known failures of this kind.
    """

    how: str
    example: str
    mend: str
    cases: tuple[str, ...] = ()


EXPLANATIONS: dict[str, Explanation] = {
    "duplicate_effect": Explanation(
        "The effect took place, and the record of it did not; or a layer above retried it under "
        "another idempotency key.",
        """\
for customer in customers[load("done"):]:
    payments.charge(customer)         # the customer is charged
    #                                   killed here
    save(done=load("done") + 1)       # never written
# the resume charges the same customer again""",
        "Store an idempotency key made from the run and the step before the effect, and send the "
        "stored one with it. Where the service takes no key, look the effect up before doing it "
        "again; that cannot see a request that is still under way.",
        ("DUP-1", "DUP-2", "DUP-4", "DUP-6", "KEY-1", "TWO-1", "TWO-10"),
    ),
    "lost_effect": Explanation(
        "The record says that it is done and it is not: it was written before the effect, or the "
        "service took a second, rightful effect for a repeat.",
        """\
for number in range(load("done"), len(customers)):
    save(done=number + 1)             # meant as "about to", read as "done"
    #                                   killed here
    email.send(customers[number])     # never sent
# the resume goes on with the next customer""",
        "Record the completion after the effect. What is written before it is an intent, and a "
        "resume looks up what came of an intent. Make keys from the run and the step, not from "
        "the arguments alone.",
        ("LOST-1", "LOST-2", "LOST-6", "KEY-2", "INPUT-6"),
    ),
    "redone_step": Explanation(
        "A step was complete and ran again: its completion was kept in memory, or in a record that "
        "the resume does not read. That the service took it for a repeat does not make it right.",
        """\
progress = load("phase")              # "phase 2", nothing finer
for item in phase(progress):
    transform(item)                   # complete, the next one has begun
    #                                   killed here
# the resume runs the whole phase again""",
        "Record each completed step durably, with its result, before the next one begins; where "
        "steps are cheap and harmless to repeat, say so with redo= in the scenario.",
        ("REDO-2", "REDO-3", "REDO-4", "REDO-8", "LOST-13"),
    ),
    "silent_restart": Explanation(
        "Nothing durable says how far the task came, or what says so could not be read and was "
        "taken for nothing.",
        """\
try:
    done = json.load(open("state.json"))
except ValueError:                    # torn by a kill in the middle of writing
    done = {}                         # so: start over, and say nothing
run_all_but(done)""",
        "Write the checkpoint beside the old one and rename it; take only a missing file for a "
        "first start; end with a clear refusal where a checkpoint cannot be read. If it is another "
        "command that resumes the task, nothing is wrong with it yet: name that with --resume.",
        ("DUP-4", "REDO-1", "REDO-7", "TORN-6", "INPUT-4"),
    ),
    "false_success": Explanation(
        "The task exits with 0, and the end of its work was never done, or a file that it should "
        "leave is missing, empty or cut short. Often 'all steps are done' was taken for 'the run "
        "is done', or a file that exists for one that is complete.",
        """\
if load("done") == len(tables):       # killed after the last table
    sys.exit(0)                       # the resume: nothing to do
for table in tables[load("done"):]:
    copy(table); save(done=...)
email.send("all tables are copied")   # never sent""",
        "Make the end of the run a step of its own, with a record of its own.",
        ("LOST-7", "LOST-10", "LOST-11", "CODE-2"),
    ),
    "wrong_inputs": Explanation(
        "A resumed step works with other values than those that the run began with: the inputs or "
        "an earlier result were not in the checkpoint, and were made or read anew.",
        """\
price = catalogue.price(item)         # step 1, its result only in memory
save(step=1)
#                                       killed here
price = None if load("step") else ...  # the resume skips step 1
payments.charge(price)                # with a value that no run has""",
        "Store each step's inputs and its result, use the stored ones on resume, and refuse where "
        "the inputs of the run are not those of the checkpoint.",
        ("INPUT-1", "TORN-2", "TORN-8", "CTRL-5", "WORLD-4"),
    ),
    "stale_world": Explanation(
        "Something that the task relies on changed between kill and resume, and it went on as if "
        "nothing had.",
        """\
approval = load("approval")           # given for 100.00
#                                       killed; meanwhile the price rises to 130.00
payments.charge(price(item))          # under an approval that nobody gave
# nothing compares the terms with those of the approval
save(paid=True)""",
        "At resume, check what the next step depends on (a version, a digest, a price); ask again "
        "or refuse where it has changed.",
        ("WORLD-1", "WORLD-3", "INPUT-2"),
    ),
    "wrong_binding": Explanation(
        "A result was given to another step than the one that made it: results are kept under the "
        "order of their arrival, or under a name that two steps share.",
        """\
results = load("results")             # in the order in which they arrived
for step, result in zip(steps, results):
    step.result = result              # step A gets what step B made
# before the kill B was faster than A
email.send(a.person, a.result)""",
        "Keep each result under the name of its step and its inputs, and look it up there.",
        ("INPUT-3",),
    ),
    "stale_writer": Explanation(
        "Two runners had the run at the same time. The former one was paused, not dead, and went "
        "on after a newer one had taken over.",
        """\
lease.take(run, seconds=30)
for step in steps:
    #                                   paused here for a minute; a second runner begins
    step.run()                        # goes on, and knows nothing of the other
    save(step)                        # over the records of the newer one""",
        "Give each runner a fencing token that grows, and let the store and the services refuse "
        "an older one; take a run over only with proof that its owner is dead.",
        ("TWO-4", "TWO-8", "TWO-12"),
    ),
    "resurrected": Explanation(
        "The task had been cancelled, and an attempt after that went on with it.",
        """\
for run in runs.where("state != 'done'"):   # 'cancelled' is among them
    run.state = "ready"
#                                       killed before the cancel was carried out
resume(run)
payments.charge(run.customer)         # after the cancel""",
        "Make the wish to cancel durable before it is answered, and read it before every step.",
        ("CTRL-1",),
    ),
    "needless_refusal": Explanation(
        "The task refused to go on although nothing that it needs had changed. A check that is too "
        "strict strands runs as surely as none.",
        """\
if digest(source_file) != load("digest"):   # a comment was edited
    sys.exit("the code has changed")
# step 7 is to run; only step 30 is another one
# every paused run now ends here
run(steps[load("done"):])""",
        "Compare per step what that step depends on, not all of the code at once.",
        ("CODE-3",),
    ),
    "out_of_order_effect": Explanation(
        "An effect that had been interrupted was done later, after one that replaces it.",
        """\
email.send(ada, "your parcel is packed")    # killed before this one
email.send(ada, "your parcel is sent")      # by the run that went on
for notice in left_over():
    email.send(notice)                # "packed", after "sent"
# nothing asks whether it is still wanted""",
        "Finish what was interrupted before anything later on the same person or thing, or drop it "
        "where a later one has gone out.",
        ("WORLD-6",),
    ),
    "stuck": Explanation(
        "However often it was resumed, the task never came to an end by itself. Two causes are "
        "common: a lock or a mark of the dead attempt keeps every later one out; or a record that "
        "the kill left torn cannot be read, and every later one dies of it. The last words "
        "and the files that it left tell which.",
        """\
if os.path.exists("run.lock"):        # left by the attempt that was killed
    sys.exit("already running")
open("run.lock", "w").close()
run()                                 # killed here
os.remove("run.lock")                 # never reached""",
        "For a lock: use one that the kernel gives back (flock), or one that names its owner with "
        "pid and start time; take over where the owner is dead, and end with a reason after N "
        "failures. "
        "For a record: write it beside the old one and rename it, and refuse with a reason where "
        "it cannot be read all the same.",
        ("STUCK-1", "STUCK-4", "STUCK-6", "LOST-8", "TORN-1", "CTRL-3"),
    ),
    "diverged_state": Explanation(
        "The files that the task leaves are not those of an undisturbed run. Often a step of "
        "several writes was left half applied, or was applied once more.",
        """\
with open("out.csv", "a") as out:
    for row in rows[load("rows"):]:
        out.write(row)                # rows 40 to 43 are written
    #                                   killed here, before the record
    save(rows=len(rows))              # the resume appends them again""",
        "Write the new content beside the old one and rename it, then record the step; or cut the "
        "file back to the recorded length before going on.",
        ("HALF-1", "HALF-3", "TORN-9"),
    ),
    "leftover_process": Explanation(
        "The task had ended, and processes that it had started were still running: they can have "
        "effects when nobody looks any more.",
        """\
child = subprocess.Popen(["sender"])  # in the background
#                                       killed here: the first process alone
# the resume starts a second sender
child = subprocess.Popen(["sender"])
sys.exit(0)                           # the first one still sends""",
        "Wait for what was started; start it so that it dies with its parent (a pipe that it "
        "reads, PR_SET_PDEATHSIG), or find and stop it at the beginning of a resume.",
        ("TWO-13",),
    ),
}
"""Every kind of finding, in the order of `FINDING_KINDS`."""


OWN_KIND = "a promise was broken that an installed checker of another package keeps"
"""What is known here of a kind that is not among `FINDING_KINDS`; see `chaoskit.checkers.own`."""


def explanation(kind: str) -> Explanation:
    """The explanation of ``kind``; one that says only what it means where none is written."""
    how = FINDING_KINDS.get(kind, "The finding itself, and that package, say more.")
    return EXPLANATIONS.get(kind) or Explanation(how, "", "")


def sentence(kind: str) -> str:
    """What ``kind`` means, as a sentence."""
    meaning = FINDING_KINDS.get(kind, OWN_KIND)
    return f"{meaning[0].upper()}{meaning[1:]}."
