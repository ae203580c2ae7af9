// What the theme leaves out for people who use a keyboard or a screen reader: the search has a name, and
// what scrolls sideways can be reached.
const search = document.querySelector(".md-search[role=dialog]");
if (search && !search.hasAttribute("aria-label")) search.setAttribute("aria-label", "Search");
const reach = () => {
  for (const box of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
addEventListener("load", () => setTimeout(reach, 0));
addEventListener("resize", reach);
