"""Starts commands for the measurements and says what each took. Its own small process.

A child that was started from a large process is told as at least as large as that one by
the kernel (its peak is the larger of the two images it had). So the measurements start
this once, and it starts everything else. It keeps nothing, hence stays below 10 MB.

In, a line of JSON each: {"pipe": [words, ...], "directory": D, "environment": {...},
"output": FILE or null, "errors": FILE}. Out, a line each: {"wall", "user", "system":
seconds, "peak": bytes, "status": [exit codes]}. Times are those of all processes of the
pipe with the children that they waited for; the peak is that of the largest one.
"""

import json
import os
import sys
import time


def start(request):
    """Starts the pipe's processes; their numbers."""
    pipe, children, stdin = request["pipe"], [], os.open(os.devnull, os.O_RDONLY)
    errors = os.open(request["errors"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.chdir(request["directory"])
    for number, words in enumerate(pipe):
        if number + 1 < len(pipe):
            following, stdout = os.pipe()
        else:
            following, stdout = None, os.open(request["output"] or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        actions = [(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate((stdin, stdout, errors))]
        children.append(os.posix_spawnp(words[0], words, request["environment"], file_actions=actions))
        os.close(stdin)
        os.close(stdout)
        stdin = following
    os.close(errors)
    os.chdir("/")  # so that a file system that was measured can be unmounted
    return children


def main():
    for line in sys.stdin:
        request = json.loads(line)
        begin = time.perf_counter_ns()
        children = start(request)
        user = system = peak = 0
        status = []
        for child in children:
            _, code, usage = os.wait4(child, 0)
            user, system = user + usage.ru_utime, system + usage.ru_stime
            peak = max(peak, usage.ru_maxrss * 1024)
            status.append(os.waitstatus_to_exitcode(code))
        wall = (time.perf_counter_ns() - begin) / 1e9
        print(json.dumps({"wall": wall, "user": user, "system": system, "peak": peak, "status": status}), flush=True)


if __name__ == "__main__":
    main()
