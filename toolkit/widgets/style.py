"""The look of the widgets: colours come from JupyterLab, so light and dark themes both fit."""

from __future__ import annotations

__all__ = ["CSS"]

CSS = """
.ltk {
  --ltk-ink: var(--jp-ui-font-color1, #1f2328);
  --ltk-muted: var(--jp-ui-font-color2, #57606a);
  --ltk-line: var(--jp-border-color2, #d8dee4);
  --ltk-soft: var(--jp-layout-color2, #f2f4f6);
  --ltk-paper: var(--jp-layout-color1, #ffffff);
  --ltk-good: var(--jp-success-color0, #1b6e33);
  --ltk-bad: var(--jp-error-color0, #b3261e);
  --ltk-brand: var(--jp-brand-color1, #1976d2);
  --ltk-mono: var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace);
  max-width: 76rem; color: var(--ltk-ink); padding: 4px 2px 10px; overflow: visible;
}
.ltk .widget-html-content { line-height: 1.45; }
.ltk-title { font-size: 1.15em; font-weight: 600; color: var(--ltk-ink); }
.ltk-title span { font-weight: 400; font-size: 0.87em; color: var(--ltk-muted); margin-left: 0.6em; }
.ltk-columns { flex-flow: row wrap; gap: 10px 28px; align-items: flex-start; overflow: visible; }
.ltk-form { flex: 1 1 28rem; min-width: 0; gap: 2px; overflow: visible; }
.ltk-preview { flex: 1 1 25rem; min-width: 0; overflow: visible; }
.ltk-field { overflow: visible; }
.ltk-field > .widget-text, .ltk-field > .widget-textarea { width: 100%; margin: 2px 0; }
.ltk > .widget-html { margin: 0 0 6px; }
.ltk-field .widget-label { text-align: left; color: var(--ltk-ink); overflow: visible; }
.ltk-field input[type="text"], .ltk-field textarea {
  font-family: var(--ltk-mono); font-size: 0.95em; border-radius: 3px;
}
.ltk-field textarea { min-height: 3.6em; resize: vertical; line-height: 1.4; padding: 5px 8px; }
.ltk-field.ltk-wrong input[type="text"], .ltk-field.ltk-wrong textarea {
  border-color: var(--ltk-bad); box-shadow: inset 3px 0 0 var(--ltk-bad);
}
.ltk-field > .widget-html, .ltk-estimates > .widget-html { margin: 0 0 5px; height: auto; min-height: 1.5em; }
.ltk-field > .widget-html > .widget-html-content { overflow-wrap: anywhere; }
.ltk-estimates { overflow: visible; margin: 0 0 4px; }
.ltk-estimates > .widget-label { margin: 0 8px 0 0; color: var(--ltk-ink); flex: none; }
.ltk-estimates > .widget-vbox { overflow: visible; }
.ltk-estimates .widget-checkbox { width: auto; margin: 0; }
.ltk-estimates .widget-checkbox .widget-label-basic, .ltk-estimates .widget-checkbox span { color: var(--ltk-ink); }
.ltk-hint, .ltk p.ltk-note { font-size: 0.92em; color: var(--ltk-muted); }
.ltk-error { font-size: 0.92em; color: var(--ltk-bad); overflow-wrap: anywhere; }
.ltk-error::before { content: "\\26A0\\FE0E\\00A0"; }
.ltk-ok { font-size: 0.92em; color: var(--ltk-good); }
.ltk-ok::before { content: "\\2713\\00A0"; }
.ltk-last { font-size: 0.92em; color: var(--ltk-muted); margin-bottom: 6px; }
.ltk-actions { align-items: center; gap: 6px; flex-wrap: wrap; padding: 4px 0 8px; overflow: visible; }
.ltk-actions > .widget-html { flex: 1 1 100%; height: auto; min-height: 1.5em; margin: 0; }
.ltk-actions .widget-button { width: auto; min-width: 7rem; margin: 0; padding: 0 16px; }
.ltk .jupyter-button:focus-visible, .ltk .ltk-code:focus-visible, .ltk .ltk-scroll:focus-visible,
.ltk summary:focus-visible, .ltk .lm-TabBar-tab:focus-visible {
  outline: 2px solid var(--ltk-brand); outline-offset: 1px;
}
.ltk .widget-tab > .lm-TabBar .lm-TabBar-tab { flex: 0 1 auto; min-width: 4.5em; padding: 0 14px; }
.ltk .widget-tab > .lm-TabBar .lm-TabBar-tabLabel { overflow: visible; }
.ltk .widget-tab > .widget-tab-contents { padding: 10px 12px; overflow: visible; border-radius: 0 0 3px 3px; }
.ltk .widget-tab .widget-html { height: auto; margin: 0; }
.ltk .widget-tab .widget-html > .widget-html-content { min-width: 0; width: 100%; }
.ltk .ltk-code {
  margin: 0 0 8px; padding: 10px 12px; max-height: 30rem; overflow: auto; border: 1px solid var(--ltk-line);
  border-radius: 3px; background: var(--ltk-soft); color: var(--ltk-ink); font-family: var(--ltk-mono);
  font-size: 0.92em; line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere;
}
.ltk .ltk-scroll { overflow-x: auto; margin-bottom: 8px; }
.ltk table.ltk-table {
  border-collapse: collapse; border: 0; margin: 0 0 8px; color: var(--ltk-ink); font-size: 0.95em; width: 100%;
  table-layout: auto;
}
.ltk table.ltk-pairs { width: auto; min-width: 24rem; }
.ltk .ltk-table caption {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
.ltk .ltk-table th, .ltk .ltk-table td {
  text-align: left; vertical-align: top; padding: 5px 20px 5px 0; border: 0;
  border-bottom: 1px solid var(--ltk-line); background: none; max-width: none; white-space: normal;
  overflow-wrap: anywhere;
}
.ltk .ltk-table th { font-weight: 600; color: var(--ltk-muted); overflow-wrap: normal; white-space: nowrap; }
.ltk .ltk-table tr, .ltk .ltk-table tr:hover { background: none; }
.ltk .ltk-table .ltk-number { text-align: right; white-space: nowrap; }
.ltk .ltk-table .ltk-brief { white-space: nowrap; }
.ltk .ltk-table .ltk-wide { width: 45%; }
.ltk .ltk-table details code { word-break: break-all; }
.ltk .ltk-table code, .ltk p code {
  font-family: var(--ltk-mono); font-size: 0.95em; background: none; padding: 0; color: inherit;
}
.ltk-badge {
  display: inline-block; padding: 0 9px; margin-right: 6px; border: 1px solid currentColor; border-radius: 10px;
  font-weight: 600; font-size: 0.92em;
}
.ltk-badge.ltk-good { color: var(--ltk-good); }
.ltk-badge.ltk-bad { color: var(--ltk-bad); }
.ltk-bar { display: inline-block; width: 12rem; height: 0.6em; background: var(--ltk-soft); border-radius: 2px; }
.ltk-bar > span { display: block; height: 100%; background: var(--ltk-brand); border-radius: 2px; }
.ltk p.ltk-note, .ltk p.ltk-error { margin: 2px 0 6px; }
.ltk-fold > summary { cursor: pointer; overflow-wrap: anywhere; }
.ltk-fold[open] > summary { margin-bottom: 4px; color: var(--ltk-muted); }
[data-jp-theme-light="false"] .ltk {
  --ltk-good: #7ee29b;
  --ltk-bad: #ff9b93;
}
"""
