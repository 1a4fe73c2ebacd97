"""A part-of-speech tagger from the bundled data: train, certify, evaluate, tag.

python examples/tagger_demo.py            about 20 seconds
python examples/tagger_demo.py --jobs 2   the same weights with two threads
"""

import argparse
import time
from collections import Counter

import maxmargin as mm
from maxmargin.datasets import load_ewt_sample
from maxmargin.features import token_features

NEW_SENTENCES = (
    "The old man the boats .",
    "Time flies like an arrow , but fruit flies like a banana .",
    "She emailed me 3 photos of her new flat in Kraków !",
)


def tagged(words, tags, truth=None):
    """Return a sentence as word/TAG, the right tag in brackets behind a wrong one."""
    marks = ["" if tag == right else f"[{right}]" for tag, right in zip(tags, truth or tags, strict=True)]
    return " ".join(f"{word}/{tag}{mark}" for word, tag, mark in zip(words, tags, marks, strict=True))


def explained(certificate, n_sentences):
    """Return what the certificate says, in words."""
    return f"""
The certificate
  Training looks for the weights with the smallest objective: half their squared length plus C times the
  hinge losses of all sentences. The weights found have the value

      primal = {certificate.primal:.4f}      computed exactly, by one more pass over all {n_sentences:,} sentences

  and a feasible point of the dual problem proves that no weights whatsoever go below

      dual   = {certificate.dual:.4f}

  So at most {certificate.gap:.4f} could still be gained, {certificate.relative_gap:.2%} of the objective (tol: 1 %).
  The best tags of a sentence were searched for {certificate.oracle_calls:,} times.
"""


def main():
    parser = argparse.ArgumentParser(description="Train and evaluate a part-of-speech tagger.")
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    jobs = parser.parse_args().jobs

    data = load_ewt_sample()
    X_train = [token_features(words) for words in data.train.words]
    X_test = [token_features(words) for words in data.test.words]
    n_tokens = sum(map(len, data.train.words))
    print(
        f"UD English EWT, a sample: {len(data.train):,} sentences ({n_tokens:,} words), {len(data.test)} more to test."
    )
    print("Each line is a pass over the data: the best objective so far, its lower bound, the relative gap.\n")

    start = time.perf_counter()
    tagger = mm.ChainSVM(C=0.1, tol=1e-2, n_jobs=jobs, verbose=1).fit(X_train, data.train.tags)
    seconds = time.perf_counter() - start
    k, d = tagger.coef_.shape
    print(f"\n{k} tags, {d:,} features, {tagger.n_iter_} iterations, {seconds:.1f} s.")
    print(explained(tagger.certificate_, len(data.train)))

    # The simplest tagger there is, for comparison: each word's most frequent tag.
    counts = {}
    for words, tags in zip(data.train.words, data.train.tags, strict=True):
        for word, tag in zip(words, tags, strict=True):
            counts.setdefault(word.lower(), Counter())[tag] += 1
    most_frequent = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    pairs = [
        (most_frequent.get(word.lower(), "NOUN"), tag)
        for words, tags in zip(data.test.words, data.test.tags, strict=True)
        for word, tag in zip(words, tags, strict=True)
    ]
    baseline = sum(guess == tag for guess, tag in pairs) / len(pairs)
    print(f"Test accuracy: {tagger.score(X_test, data.test.tags):.2%} of {len(pairs):,} words", end="")
    print(f" (each word's most frequent tag: {baseline:.2%}).")

    print("\nFrom the test sentences, the right tag in brackets behind a wrong one:")
    for i in [i for i, words in enumerate(data.test.words) if 6 <= len(words) <= 14][:4]:
        print(" ", tagged(data.test.words[i], tagger.predict([X_test[i]])[0], data.test.tags[i]))
    print("\nNew ones:")
    for words in (sentence.split() for sentence in NEW_SENTENCES):
        print(" ", tagged(words, tagger.predict([token_features(words)])[0]))


if __name__ == "__main__":
    main()
