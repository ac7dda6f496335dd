/// The endpoints that are judged together, in a tree of policies.
struct OutlierScope {
  /// Where the policy with outlier detection is.
  let place: TreePlace
  let settings: OutlierDetection
}
