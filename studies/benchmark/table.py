"""The table of docs/methods.md from a result of `affpcl reproduce benchmark --out DIR`.

usage: table.py DIR/benchmark.json
"""
import json
import sys


def words(row):
    at = f"{row['problem']} {row['level']:g}" + (f", {row['participation']:.0%} present" if row["participation"] < 1 else "")
    return f"{at}: {row['vs_independent']['mean']:.2g}"


def main(path):
    with open(path, encoding="utf-8") as file:
        result = json.load(file)
    print("| method | mean rank | wins | harms | agents harmed | tuned: wins, harms |\n|---|---|---|---|---|---|")
    tuned = {m["method"]: m for m in result["methods"] if m["tuned"]}
    for method in [m for m in result["methods"] if not m["tuned"]]:
        rows = [r for r in result["rows"] if r["method"] == method["method"] and not r["tuned"] and "vs_independent" in r]
        rows = [r for r in rows if r["vs_independent"]["mean"] is not None]
        gains = sorted((r for r in rows if r["vs_independent"]["hi"] < 1), key=lambda r: r["vs_independent"]["mean"])
        harms = sorted((r for r in rows if r["vs_independent"]["lo"] > 1), key=lambda r: -r["vs_independent"]["mean"])
        rank, other = method["rank"], tuned.get(method["method"], {}).get("rank")
        also = f", tuned {other['mean']:.1f}" if other else ""
        of = tuned.get(method["method"])
        wins = f"{of['gains']}, {of['harms']}; agents {of['harmed']:.0%}" if of else "-"
        print(f"| `{method['method']}` | {rank['mean']:.1f} [{rank['lo']:.1f}, {rank['hi']:.1f}]{also} "
              f"| {len(gains)} of {len(rows)} cells; {'; '.join(map(words, gains[:3])) or '-'} "
              f"| {len(harms)} of {len(rows)}; {'; '.join(map(words, harms[:2])) or '-'} | {method['harmed']:.0%} | {wins} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
