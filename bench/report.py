"""What bench/compare.py found, as Markdown."""


def us(seconds):
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def markdown(results):
    show = lambda r: f"{r[0]:.2f} [{r[1]:.2f}, {r[2]:.2f}]"
    lines = [f"Machine: {results['machine']}; {results['instruction_set']}; load when it began {results['load'][0]:.1f}, "
             f"when it ended {results['load'][1]:.1f}; {results['repeats']} repetitions, {results['threads']} thread(s).", ""]
    L = results["limits"]
    lines += [f"Limits of one core: {L['fma_f64'] / 1e9:.1f} Gflop/s (f32 {L['fma_f32'] / 1e9:.1f}), {L['exp_f64'] / 1e9:.2f} Gexp/s "
              f"(f32 {L['exp_f32'] / 1e9:.2f}), {L['normals'] / 1e6:.0f} M normals/s, copying {L['bandwidth'] / 1e9:.1f} GB/s.", "",
              "| n, d, ratio | contestant | a round | at best | times as long as affpcl | as affpcl f32 | share of the limit |",
              "|---|---|---|---|---|---|---|"]
    for case in results["rounds"]:
        for name, entry in case["contestants"].items():
            percent = [f"{100 * value:.0f}" for value in entry.get("share", ())]
            share = f"{percent[0]} % [{percent[1]}, {percent[2]}]" if percent else ""
            single = show(entry["ratio_f32"]) if "ratio_f32" in entry else ""
            least = us(entry["least"]) if "least" in entry else ""
            lines.append(f"| {case['n']}, {case['d']}, {case['ratio']} | {name} | {us(entry['seconds'][0])} | {least} | "
                         f"{show(entry['ratio'])} | {single} | {share} |")
    lines += ["", *(f"Growth of the time with n, {name}: n^{value:.2f}." for name, value in results["exponents"].items())]
    if "study" in results:
        s = results["study"]
        lines += ["", f"The paper's comparison (10 replicates x 60 steps x 3 methods): affpcl {us(s['affpcl'][0])}, tuned NumPy "
                  f"{us(s['NumPy tuned'][0])}, ratio {show(s['ratio'])}; without the program's start and report "
                  f"{us(s['alone'][0])}, ratio {show(s['ratio_alone'])}."]
    lines += ["", *results["missing"]]
    return "\n".join(lines) + "\n"
