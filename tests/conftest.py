"""Set before SciPy is first imported: scikit-learn's checks of estimators skip array API input otherwise."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
