"""Writes the tables of the example, one for every hospital: python3 examples/federation/make_data.py

The length of a stay depends on age, on whether it was an emergency and on a score of illness; every ward has effects of
its own, which lie around those that all wards have in common.
"""
import csv
import pathlib
import random

WARDS = {"north": ["cardiology", "surgery", "geriatrics", "oncology"],
         "south": ["cardiology", "surgery", "oncology", "neurology", "urology"],
         "east": ["surgery", "geriatrics", "neurology"], "west": ["cardiology", "oncology", "geriatrics", "urology"]}

draw = random.Random(7)
for hospital, wards in WARDS.items():
    rows = []
    for ward in wards:
        base, of_age, of_illness = draw.gauss(6, 1), draw.gauss(0.05, 0.01), draw.gauss(1.2, 0.3)
        for _ in range(draw.randint(9, 26)):
            age, illness = round(draw.gauss(62, 14)), round(draw.gauss(0, 1), 2)
            emergency = draw.choice(["yes", "no", "no"])
            days = base + of_age * (age - 60) + of_illness * illness + 1.5 * (emergency == "yes") + draw.gauss(0, 2)
            rows.append([f"{hospital} {ward}", age, emergency, illness, f"{max(days, 0.5):.1f}"])
    draw.shuffle(rows)
    with open(pathlib.Path(__file__).parent / f"{hospital}.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["ward", "age", "emergency", "illness", "days"], *rows])
