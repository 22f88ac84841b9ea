"""Checks the files that hosts of repositories show: the citation, the changelog and the forms for issues.

    project_test.py VERSION     the version in CMakeLists.txt
"""

import pathlib
import re
import sys
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMS = ROOT / ".github/ISSUE_TEMPLATE"
KINDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
VERSION = sys.argv.pop(1) if len(sys.argv) > 1 else ""


def form_problems(form):
    """Returns what a host would refuse of a form for issues."""
    found = [f"{key} is missing" for key in ("name", "description", "body") if not form.get(key)]
    ids = [part.get("id") for part in form.get("body", []) if part.get("type") != "markdown"]
    if len(set(ids)) != len(ids) or None in ids:
        found.append(f"ids are missing or twice there: {ids}")
    for part in form.get("body", []):
        if part.get("type") not in KINDS:
            found.append(f"{part.get('type')} is no kind of part")
        wanted = "value" if part.get("type") == "markdown" else "label"
        if wanted not in part.get("attributes", {}):
            found.append(f"{part.get('id')} has no {wanted}")
    return found


class Project(unittest.TestCase):
    def test_forms_for_issues_can_be_shown(self):
        forms = sorted(FORMS.glob("*.yml"))
        self.assertEqual([form.name for form in forms], ["bug_report.yml", "config.yml", "feature_request.yml"])
        for form in forms:
            parsed = yaml.safe_load(form.read_text())
            if form.name == "config.yml":
                self.assertEqual(set(parsed) - {"blank_issues_enabled", "contact_links"}, set())
            else:
                self.assertEqual(form_problems(parsed), [], form.name)

    def test_the_check_of_forms_finds_what_is_wrong(self):
        form = yaml.safe_load((FORMS / "bug_report.yml").read_text())
        form["body"][1].pop("attributes")
        form["body"][2]["id"] = form["body"][1]["id"]
        form["body"][3]["type"] = "invented"
        self.assertEqual(len(form_problems({**form, "name": ""})), 4)

    def test_a_bug_report_asks_for_weir_doctor(self):
        parts = {part.get("id"): part for part in yaml.safe_load((FORMS / "bug_report.yml").read_text())["body"]}
        self.assertIn("weir doctor", parts["doctor"]["attributes"]["label"])
        self.assertTrue(parts["doctor"]["validations"]["required"])

    def test_the_citation_has_the_version(self):
        citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
        self.assertEqual(str(citation["version"]), VERSION)
        self.assertEqual(citation["license"], "Apache-2.0")
        self.assertEqual(citation["authors"], [{"name": "The Weir developers"}])
        for key in ("cff-version", "title", "message", "type"):
            self.assertIn(key, citation)

    def test_the_changelog_has_the_version_first(self):
        versions = re.findall(r"^## \[([^\]]+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
        self.assertEqual(versions[0][0], VERSION)
        for _, date in versions:
            self.assertRegex(date, r"^(unreleased|\d{4}-\d\d-\d\d)$")

    def test_paths_in_contributing_exist(self):
        text = re.sub(r"```.*?```", "", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.S)
        paths = re.findall(r"`((?:allocator|scheduler|trainer|tools|tests|docs|\.ci)/[^` ]*)`", text)
        self.assertGreater(len(paths), 20)
        for path in paths:
            if "NAME" not in path:
                self.assertTrue(list(ROOT.glob(path.rstrip("/"))), path)

    def test_names_in_contributing_exist(self):
        """Each name of the how-tos is in the file that the same line, or the lines before it, name."""
        for file, name in (
            ("allocator/pool_options.hpp", "enum class PoolKind"),
            ("allocator/kinds/pool_kind.cpp", "kKinds"),
            ("allocator/kinds/pool_kind.cpp", "allowed_kinds_of_pool"),
            ("allocator/pool_kind.hpp", "struct PoolSetting"),
            ("tests/allocator/pool_fixture.hpp", "PoolKind::kPaged"),
            ("tools/preload/driver/hooks.inc", "HOOK_STREAM("),
            ("tools/replay/read/readers.cpp", "Trace read_csv("),
            ("tools/replay/read/readers.cpp", "is_allocation_log("),
            ("tools/timeline/files/formats.cpp", "FormatUse"),
            ("trainer/run/settings.hpp", "lines() const"),
            ("trainer/commands/flags.cpp", '"--pool"'),
            ("tools/weir/commands/run_flags.cpp", '"WEIR_POOL"'),
            ("allocator/pool_options.cpp", "read_setting("),
            ("scheduler/admission/policy.cpp", "read_setting("),
            ("tools/timeline/recorder/settings.cpp", "read_setting("),
            ("tools/preload/settings/settings.cpp", "describe(const Settings&"),
            ("allocator/base/variables.cpp", "kKnown"),
        ):
            self.assertIn(name, (ROOT / file).read_text(), file)


if __name__ == "__main__":
    unittest.main()
