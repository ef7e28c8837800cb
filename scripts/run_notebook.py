#!/usr/bin/env python3
"""Runs the cells of a notebook with Jupyter's own kernel, as a reader does.

    PYTHONPATH=build/release/python /usr/bin/python3 scripts/run_notebook.py docs/tutorial.ipynb --write
    ...                                                                                      --check
    scripts/run_notebook.py docs/tutorial.ipynb --page FOLDER

--write puts the outputs into the notebook; --check fails if they are not what would be written. --page runs nothing and
writes the notebook as a page of the site. Needs Debian's python3-nbclient and python3-ipykernel.
"""
import argparse
import os
import pathlib
import sys
import tempfile

import nbformat


def executed(path):
    from nbclient import NotebookClient
    notebook = nbformat.read(path, as_version=4)
    os.environ.update(JUPYTER_PLATFORM_DIRS="1", PYDEVD_DISABLE_FILE_VALIDATION="1")
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, kernel_name="python3",
                       resources={"metadata": {"path": folder}}).execute()
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        for output in cell.get("outputs", []):
            output.pop("execution_count", None)
            if output.output_type == "execute_result":
                output.output_type = "display_data"
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = joined(cell.outputs)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python",
                                        "name": "python3"}}
    return notebook


def joined(outputs):
    """The outputs with what was printed in one piece: a slow machine sends it in several."""
    pieces = []
    for output in outputs:
        if output.output_type == "stream" and pieces and pieces[-1].get("name") == output.name:
            pieces[-1].text += output.text
        else:
            pieces.append(output)
    return pieces


def text_of(output):
    if output.output_type == "stream":
        return output.text
    return output.data.get("text/plain", "") + "\n"


def markdown(notebook):
    """The notebook as a page of the site."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        text = "".join(text_of(output) for output in cell.outputs)
        if text.strip():
            parts.append("```text\n" + text.rstrip("\n") + "\n```")
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--page", type=pathlib.Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.page:
        page = markdown(nbformat.read(arguments.notebook, as_version=4))
        (arguments.page / arguments.notebook.with_suffix(".md").name).write_text(page, encoding="utf-8")
        return
    text = nbformat.writes(executed(arguments.notebook)) + "\n"
    if arguments.write:
        arguments.notebook.write_text(text, encoding="utf-8")
    elif arguments.check and arguments.notebook.read_text(encoding="utf-8") != text:
        sys.exit(f"{arguments.notebook} is not what its cells give; run scripts/run_notebook.py "
                 f"{arguments.notebook} --write")


if __name__ == "__main__":
    main()
