"""Readers and writers for the files of the field."""

from maxmargin.files.conll import ConlluToken, read_conll, read_conllu

__all__ = ["ConlluToken", "read_conll", "read_conllu"]
