"""What became of every item of the five papers that states something.

`STATEMENTS` has all 71, in the papers' order. Each is a `Statement`: what is printed, whether that
is true and whether it says anything at the papers' sizes, the nearest form that we could prove, and
a *witness*, a function of no arguments that runs in at most seconds and shows it. A witness writes
what the paper prints from its page; functions of `ofslib.bounds` are what it judges.

>>> from ofslib.reproduction.statements import STATEMENTS
>>> limit = next(s for s in STATEMENTS if s.item == "Limit after Theorem 4.1")
>>> limit.true, limit.corrected
(False, 'exp(-2 lambda T^(1 - alpha))')
>>> limit.witness().true
False
"""

from ofslib.reproduction.statements.barda import BARDA
from ofslib.reproduction.statements.dissertation_2 import CHAPTER_2
from ofslib.reproduction.statements.dissertation_3 import CHAPTER_3
from ofslib.reproduction.statements.dissertation_5 import CHAPTER_5
from ofslib.reproduction.statements.leverage import OFS
from ofslib.reproduction.statements.sfsa import SFSA
from ofslib.reproduction.statements.statement import Shown as Shown
from ofslib.reproduction.statements.statement import Statement as Statement
from ofslib.reproduction.statements.substitution import OS

STATEMENTS: tuple[Statement, ...] = tuple(
    statement
    for paper in (SFSA, CHAPTER_2, CHAPTER_3, CHAPTER_5, OS, OFS, BARDA)
    for statement in paper.statements
)
