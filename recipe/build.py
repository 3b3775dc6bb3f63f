"""Render the conda recipe, and build it from this tree.

    uv run --no-project --with py-rattler-build,pyyaml python recipe/build.py

The package is built from an sdist of the tree, in place of the released one, with packages of the channel
conda-forge, and its tests are run. `--render` stops before that, and reaches no channel.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import yaml
from rattler_build import Stage0Recipe, VariantConfig

RECIPE = Path(__file__).parent / "recipe.yaml"
VARIANTS = VariantConfig({"python_min": ["3.12"]})  # conda-forge's pinning has it


def of_this_tree(folder: Path) -> dict:
    """The recipe, with an sdist of this tree as its source."""
    command = ["uv", "build", "--quiet", "--sdist", "--out-dir", folder, RECIPE.parents[1]]
    subprocess.run(command, check=True)
    (sdist,) = folder.glob("*.tar.gz")
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    version = sdist.name.removeprefix("steinax-").removesuffix(".tar.gz")
    recipe["context"]["version"] = version.replace("+", "_")
    recipe["source"] = {"path": str(sdist)}
    return recipe


def main() -> None:
    """Print what the recipe requires, and build it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--render", action="store_true", help="build nothing")
    given = parser.parse_args()
    for variant in Stage0Recipe.from_file(RECIPE).render(VARIANTS):
        recipe = variant.recipe
        print(f"{recipe.package.name} {recipe.package.version}")
        print("host:", *recipe.requirements.host, sep="\n  ")
        print("run:", *recipe.requirements.run, sep="\n  ")
    if not given.render:
        with tempfile.TemporaryDirectory() as folder:
            local = Stage0Recipe.from_dict(of_this_tree(Path(folder)))
            for built in local.run_build(VARIANTS, output_dir=Path(folder, "output")):
                print(built)


if __name__ == "__main__":
    main()
