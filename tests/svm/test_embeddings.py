"""Many features and classes: samples may leave and arrive in any order. `make long` has 768 features, 100 classes."""

from tests.svm.embeddings import check_any_order, embeddings


def test_forgetting_and_inserting_in_any_order_end_in_the_same_bytes():
    check_any_order(*embeddings(600, 96, 12), few=12)
