"""One measurement: a command as a whole tree of processes; and the table of all of them.

Invariant: everything that was measured is kept, each sample as it was; medians are taken
only when something is printed. A command that fails ends the measurements, with what it
said: a figure of a command that did not do its work is worth nothing.
"""

import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time


class Job:
    """What is run: commands joined by pipes, and the exit codes that mean success."""

    def __init__(self, *pipe, directory=None, output=None, fine=(0,)):
        self.pipe = [[str(word) for word in words] for words in pipe]
        self.directory, self.output, self.fine = directory, output, fine


def shell(script, **more):
    """A job for several commands in turn, which stops at the first that fails."""
    return Job(["sh", "-e", "-c", script], **more)


class Runner:
    """Runs jobs in one environment through the small process that starts them."""

    def __init__(self, work, environment):
        self.work, self.environment = pathlib.Path(work), dict(environment)
        spawn = pathlib.Path(__file__).with_name("spawn.py")
        words = [sys.executable, "-I", "-S", spawn]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, job, **environment):
        """Runs it; what it took. Ends the program when it fails."""
        errors = self.work / "errors"
        request = {
            "pipe": job.pipe,
            "directory": str(job.directory or self.work),
            "environment": self.environment | environment,
            "output": str(job.output) if job.output else None,
            "errors": str(errors),
        }
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"could not be started: {job.pipe}")
        sample = json.loads(answer)
        if any(status not in job.fine for status in sample["status"]):
            said = errors.read_text(errors="replace")[-2000:]
            sys.exit(f"failed: {' | '.join(map(' '.join, job.pipe))}\nexit codes {sample['status']}\n{said}")
        return sample

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Results:
    """All samples, by corpus, operation and who; and sizes and remarks beside them."""

    def __init__(self):
        self.samples = collections.defaultdict(list)
        self.sizes = collections.defaultdict(list)
        self.facts = {}

    def keep(self, corpus, operation, who, sample):
        self.samples[corpus, operation, who].append(sample)

    def size(self, corpus, what, who, count):
        """Bytes on the disk: of a store, or what a snapshot added to it."""
        self.sizes[corpus, what, who].append(count)

    def cpu(self, corpus, operation, who):
        """Median of user and system time in seconds; none when it was not measured."""
        return self.middle(corpus, operation, who, lambda sample: sample["user"] + sample["system"])

    def wall(self, corpus, operation, who):
        return self.middle(corpus, operation, who, lambda sample: sample["wall"])

    def peak(self, corpus, operation, who):
        return self.middle(corpus, operation, who, lambda sample: sample["peak"])

    def middle(self, corpus, operation, who, figure):
        samples = self.samples.get((corpus, operation, who))
        return statistics.median(map(figure, samples)) if samples else None

    def middle_size(self, corpus, what, who):
        sizes = self.sizes.get((corpus, what, who))
        return statistics.median(sizes) if sizes else None


def in_turns(jobs, rounds):
    """(round, who, job) of all jobs in each round, each round in another order: whatever
    else the machine does hits all of them alike."""
    names = list(jobs)
    for number in range(rounds):
        turn = number % len(names) if names else 0
        for name in names[turn:] + names[:turn]:
            yield number, name, jobs[name]


def disk_usage(*places):
    """Bytes that files below `places` take on the disk, each file once whatever its names."""
    seen, total, todo = set(), 0, [os.fspath(place) for place in places if os.path.lexists(place)]
    while todo:
        path = todo.pop()
        stat = os.lstat(path)
        if (stat.st_dev, stat.st_ino) not in seen:
            seen.add((stat.st_dev, stat.st_ino))
            total += stat.st_blocks * 512
        if os.path.isdir(path) and not os.path.islink(path):
            todo.extend(entry.path for entry in os.scandir(path))
    return total


def settle():
    """Waits until no file counts as just written: tools read such files again, since a
    later write in the same tick of the clock could not be told."""
    time.sleep(1.1)
