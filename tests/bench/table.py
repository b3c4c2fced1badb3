"""The tables: what everything took, and what is asked of snapback."""

from targets import targets

MB = 1e6


def results_table(results, corpus):
    """Lines: for each operation on a corpus, medians of all who were measured, and how many
    times snapback's CPU and wall time each of them took."""
    yield heading(results, corpus)
    figures = "".join(f"{name:>9}" for name in ("user", "system", "CPU", "wall"))
    yield f"{'milliseconds, MB':30}{figures}{'peak':>9}{'store':>10}{'+':>8}{'CPU':>8}{'wall':>7} of snapback's{'n':>4}"
    keys = [key for key in results.samples if key[0] == corpus]
    for operation in dict.fromkeys(key[1] for key in keys):
        yield operation
        for key in keys:
            if key[1] == operation:
                yield row(results, *key)


def heading(results, corpus):
    facts = results.facts.get(corpus)
    if not facts:
        return f"== {corpus} files"
    print_ = f", fingerprint {facts['fingerprint']}" if "fingerprint" in facts else ""
    return f"== {corpus}: {facts['files']:,} files, {facts['bytes'] / MB:,.1f} MB{print_}"


def row(results, corpus, operation, who):
    def middle(figure):
        return results.middle(corpus, operation, who, figure)

    user, system = middle(lambda s: s["user"]), middle(lambda s: s["system"])
    cpu, wall, peak = (getattr(results, f)(corpus, operation, who) for f in ("cpu", "wall", "peak"))
    store = results.middle_size(corpus, "store", who) if operation == "first" else None
    growth = results.middle_size(corpus, "growth", who) if operation.startswith("1 %") else None
    line = f"  {who:28}" + "".join(f"{figure * 1e3:9.1f}" for figure in (user, system, cpu, wall))
    line += f"{peak / MB:9.1f}{size(store):>10}{size(growth):>8}"
    mine = results.cpu(corpus, operation, "snapback"), results.wall(corpus, operation, "snapback")
    if None not in mine and mine[0] > 0:
        line += f"{cpu / mine[0]:8.2f}{wall / mine[1]:7.2f}{'':15}"
    else:
        line += " " * 30
    line += f"{len(results.samples[corpus, operation, who]):4}"
    faults = results.facts.get(f"{corpus} undo", {}).get(who) if operation == "undo" else None
    return line + ("" if faults is None else "  exact" if not faults else f"  not exact: {'; '.join(faults)}")


def size(count):
    return "" if count is None else f"{count / MB:.1f}"


def targets_table(results):
    """Lines: each target with its figure and verdict."""
    for target in targets(results):
        value = "" if target.value is None else f"{target.value:.2f} {target.unit}"
        limit = f"{target.limit:.2f} {target.unit}"
        yield f"{target.corpus:4}{target.text:72}{value:>12}  at most {limit:>9}  {target.verdict()}"
