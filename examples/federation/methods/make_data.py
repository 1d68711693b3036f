"""Writes the tables of the example, one for every plant: python3 examples/federation/methods/make_data.py

Every machine of a plant has its own costs of heat and of wear, which depend on load and speed. A machine weighs the two
outcomes in its own way.
"""
import csv
import pathlib
import random

MACHINES = {"north": 6, "south": 9, "east": 5, "west": 8}
FOLDS = 5

draw = random.Random(3)
for plant, machines in MACHINES.items():
    rows = []
    for machine in range(machines):
        heat, wear = [draw.gauss(1, 0.2), draw.gauss(-0.5, 0.2)], [draw.gauss(0.4, 0.2), draw.gauss(0.8, 0.2)]
        shift = draw.gauss(0, 0.3)
        for row in range(draw.randint(8, 14)):
            x = [draw.gauss(shift, 1), draw.gauss(0, 1)]
            outcomes = [sum(a * b for a, b in zip(of, x)) + draw.gauss(0, 0.7) for of in (heat, wear)]
            rows.append([f"{plant} {machine + 1}", row % FOLDS, *(f"{v:.3f}" for v in x + outcomes)])
    with open(pathlib.Path(__file__).parent / f"{plant}.csv", "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["machine", "fold", "load", "speed", "heat", "wear"], *rows])
