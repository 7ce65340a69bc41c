package document_test

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
)

// Only the named episode opens. It is in view after the charts are drawn.
func TestAddressOpensEpisode(t *testing.T) {
	t.Parallel()
	page := withScript(written(t, sample().WriteHTML), `
		const episode = document.getElementById("episode-77b0");
		setTimeout(() => { document.title = String(episode.getBoundingClientRect().top < innerHeight && scrollY > innerHeight); }, 3000);`)
	v := newBrowser(t).visit(page, "#episode-77b0", light, "--dump-dom")
	for id, open := range map[string]bool{"77b0": true, "a3f9": false} {
		if got := regexp.MustCompile(`<details class="episode" id="episode-` + id + `" open`).MatchString(v.dom); got != open {
			t.Errorf("episode %s: open is %v", id, got)
		}
	}
	if !strings.Contains(v.dom, "<title>true</title>") {
		t.Error("the episode is not in sight")
	}
}

// driver uses the page like a reader and writes the results into the title as JSON.
const driver = `
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const until = async (f) => { for (let i = 0; i < 50 && !f(); i++) await wait(100); return f(); };
(async () => {
  const out = {};
  try {
    const table = document.querySelector("table");
    const column = (i) => Array.from(table.tBodies[0].rows, (r) => r.cells[i].firstElementChild.textContent);
    const sort = (i) => { table.tHead.rows[0].cells[i].querySelector("button").click(); return column(i).slice(0, 3).join(" ") + " " + table.tHead.rows[0].cells[i].getAttribute("aria-sort"); };
    out.turns = [sort(7), sort(7), sort(7)];
    out.names = [sort(0), sort(0), sort(0)];
    sort(8);
    out.others = table.tHead.rows[0].cells[7].getAttribute("aria-sort");
    out.muted = column(8).at(-1);

    const [wide, ...sheets] = document.querySelectorAll("#section-wide table");
    const rows = (t) => Array.from(t.tBodies[0].rows, (r) => r.cells[1].textContent).join(" ");
    wide.tHead.rows[0].cells[1].querySelector("button").click();
    wide.tHead.rows[0].cells[1].querySelector("button").click();
    out.sheets = sheets.length > 2 && [rows(wide), ...new Set(sheets.map(rows))];

    document.querySelector('a[href="#episode-a3f9"]').click();
    const episode = document.getElementById("episode-a3f9");
    out.opened = await until(() => episode.open);
    episode.open = false;
    document.querySelector('a[href="#episode-a3f9"]').click();
    out.again = await until(() => episode.open);

    const bar = await until(() => document.querySelector(".chart .mark-rect path[aria-roledescription=bar]"));
    const box = bar.getBoundingClientRect();
    const at = { bubbles: true, clientX: box.x + 5, clientY: box.y + 5 };
    for (const kind of ["pointerover", "mouseover", "pointermove", "mousemove"]) bar.dispatchEvent(new MouseEvent(kind, at));
    out.tooltip = await until(() => document.querySelector("#vg-tooltip-element.visible")?.innerText.replace(/\s+/g, " "));

    const links = document.querySelector(".vega-actions").children;
    for (const l of links) l.dispatchEvent(new FocusEvent("focus"));
    await until(() => Array.from(links).every((l) => /^(data|blob):/.test(l.href)));
    out.saved = Array.from(links, (l) => l.textContent + " " + l.download + " " + l.href.slice(0, 10));
  } catch (error) {
    out.error = String(error);
  }
  document.title = JSON.stringify(out);
})();
`

// withScript adds a script to a page and to its policy.
func withScript(page, script string) string {
	sum := sha256.Sum256([]byte(script))
	page = strings.Replace(
		page, "script-src", "script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'", 1,
	)
	end := strings.LastIndex(page, "</body>")
	return page[:end] + "<script>" + script + "</script>" + page[end:]
}
