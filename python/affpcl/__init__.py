"""Personalised collaborative learning: one model per agent, learnt together.

    from affpcl import PersonalizedRegressor
    model = PersonalizedRegressor().fit(X, y, groups=shop)

    import affpcl
    result = affpcl.reproduce("fig-comparison")

The engine is C++ (affpcl._core); docs/python.md is the guide.
"""
from affpcl._core import Block, Key, Model, Sample, Shape, catalogue, instruction_set, normals, uniforms, version
from affpcl.estimators import PersonalizedClassifier, PersonalizedGLM, PersonalizedRegressor
from affpcl.extend import Memory, Method, Problem, method, problem
from affpcl.fits import Affinity, Fit, affinity, fit, load_model, predict, report
from affpcl.personalized import Personalized
from affpcl.studies import Replicate, Result, benchmark, load_result, reproduce, run
from affpcl.tables import Table

__version__ = version()

__all__ = [
    "Affinity", "Block", "Fit", "Key", "Memory", "Method", "Model", "Personalized", "PersonalizedClassifier", "PersonalizedGLM",
    "PersonalizedRegressor", "Problem", "Replicate", "Result", "Sample", "Shape", "Table", "__version__", "affinity",
    "benchmark", "catalogue", "fit", "instruction_set", "load_model", "load_result", "method", "normals", "predict", "problem", "report",
    "reproduce", "run", "uniforms",
]
