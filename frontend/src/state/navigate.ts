/** What the address asks for is opened: at the start, and by the browser's own back and forward. */
import { sideView } from "./layout";
import { page, parseAddress } from "./page";
import { closeReview, openReview } from "./review";
import { followRun } from "./workbench";

export function followAddress(): void {
  const next = parseAddress(location.pathname, location.search);
  page.value = next;
  if (next.name === "review") {
    sideView.value = "reviews";
    void openReview(next.id, next.place, false);
  } else closeReview();
  if (next.name === "bench") followRun(next.run);
}
