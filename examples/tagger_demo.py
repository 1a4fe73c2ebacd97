"""
A part-of-speech tagger
=======================

Train on the bundled sentences, read the certificate, evaluate, tag: what :class:`maxmargin.ChainSVM` does with sequences.

To run it by hand:

.. code-block:: text

    python examples/tagger_demo.py            some seconds
    python examples/tagger_demo.py --jobs 2   the same weights with two threads
"""

import argparse
import time
from collections import Counter

import maxmargin as mm
from maxmargin.datasets import load_ewt_sample
from maxmargin.features import token_features

parser = argparse.ArgumentParser(description="Train and evaluate a part-of-speech tagger.")
parser.add_argument("--sentences", type=int, help="how many to train with; all without this option")
parser.add_argument("--jobs", type=int, default=1, help="threads")
arguments = parser.parse_args()

# %%
# Words and their features
# ------------------------
#
# A sentence is a list of words. Each word becomes a list of strings, its features: the word, its neighbours, its
# beginning and end, whether it has digits and capitals.

data = load_ewt_sample()
train_words, train_tags = data.train.words[: arguments.sentences], data.train.tags[: arguments.sentences]
X_train = [token_features(words) for words in train_words]
X_test = [token_features(words) for words in data.test.words]
print(f"UD English EWT, a sample: {len(X_train):,} sentences ({sum(map(len, X_train)):,} words)", end=" ")
print(f"to train and {len(X_test)} to test.")
print(f"\nFeatures of {train_words[0][0]!r}, the first word:", *X_train[0][0], "\n")

# %%
# Training
# --------
#
# Each line is a pass over the data: the best objective so far, its lower bound, the relative gap.

start = time.perf_counter()
tagger = mm.ChainSVM(C=0.1, tol=1e-2, n_jobs=arguments.jobs, verbose=1).fit(X_train, train_tags)
seconds = time.perf_counter() - start
k, d = tagger.coef_.shape
print(f"\n{k} tags, {d:,} features, {tagger.n_iter_} iterations, {seconds:.1f} s.")

# %%
# The certificate
# ---------------
#
# Training looks for the weights with the smallest objective: half their squared length plus C times the hinge losses of all
# sentences. The value of the weights found was computed exactly, by one more pass over all sentences, and a feasible point
# of the dual problem proves that no weights whatsoever go below its own value.

certificate = tagger.certificate_
print("\nThe certificate")
print(f"primal  {certificate.primal:.4f}   the objective of these weights")
print(f"dual    {certificate.dual:.4f}   no weights go below this")
print(
    f"gap     {certificate.gap:.4f}   at most that much could be gained, {certificate.relative_gap:.2%} of the objective"
)
print(f"The best tags of a sentence were searched for {certificate.oracle_calls:,} times.")

# %%
# Evaluation
# ----------
#
# Against the simplest tagger there is: each word's most frequent tag.

counts = {}
for words, tags in zip(train_words, train_tags, strict=True):
    for word, tag in zip(words, tags, strict=True):
        counts.setdefault(word.lower(), Counter())[tag] += 1
most_frequent = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
pairs = [
    (most_frequent.get(word.lower(), "NOUN"), tag)
    for words, tags in zip(data.test.words, data.test.tags, strict=True)
    for word, tag in zip(words, tags, strict=True)
]
print(f"\nTest accuracy: {tagger.score(X_test, data.test.tags):.2%} of {len(pairs):,} words")
print(f"Each word's most frequent tag: {sum(guess == tag for guess, tag in pairs) / len(pairs):.2%}")

# %%
# Tagging
# -------
#
# Some test sentences, the right tag in brackets behind a wrong one, and new ones that are meant to be hard.

NEW_SENTENCES = (
    "The old man the boats .",
    "Time flies like an arrow , but fruit flies like a banana .",
    "She emailed me 3 photos of her new flat in Kraków !",
)


def tagged(words, tags, truth=None):
    """Return a sentence as word/TAG, the right tag in brackets behind a wrong one."""
    marks = ["" if tag == right else f"[{right}]" for tag, right in zip(tags, truth or tags, strict=True)]
    return " ".join(f"{word}/{tag}{mark}" for word, tag, mark in zip(words, tags, marks, strict=True))


print("\nTest sentences")
for i in [i for i, words in enumerate(data.test.words) if 6 <= len(words) <= 14][:4]:
    print(tagged(data.test.words[i], tagger.predict([X_test[i]])[0], data.test.tags[i]))
print("\nNew sentences")
for words in (sentence.split() for sentence in NEW_SENTENCES):
    print(tagged(words, tagger.predict([token_features(words)])[0]))
