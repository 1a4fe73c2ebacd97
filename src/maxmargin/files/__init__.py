"""Readers and writers for the files of the field."""

from maxmargin.files.conll import ConlluToken, read_conll, read_conllu
from maxmargin.files.sparse_text import read_svm_hmm, read_svmlight, write_svm_hmm, write_svmlight

__all__ = [
    "ConlluToken",
    "read_conll",
    "read_conllu",
    "read_svm_hmm",
    "read_svmlight",
    "write_svm_hmm",
    "write_svmlight",
]
