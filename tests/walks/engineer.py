"""An engineer of models: PyTorch, and folders of Hugging Face with random weights.

    .venv/bin/python tests/walks/engineer.py [--keep DIR]
"""

from walk import Walk

with Walk("engineer", leave={"torchrun": "make test-torchrun runs it"}, checkout=["pip install ."]) as walk:
    walk.run("pip install .")
    walk.follow("docs/models/huggingface.md")
    walk.follow("docs/models/pytorch.md")
