// The central steps of one round: x^c (CDL) and theta^c (COE, gradient form).
//
// With one local step the sum carries the agents' directions. With K steps each agent takes the K
// central steps on copies of x^c and theta^c, the sum carries how far the copies moved, and the
// centre moves by the mean.
#pragma once

#include "affpcl/math/message.h"
#include "affpcl/method/method.h"

namespace affpcl {

class CentralPath {
 public:
  // theta has no rows where theta^c takes no gradient steps.
  void declare(Field x, Field theta, SumLayout& sum);
  void centre(Mean mean, Centre centre) const;
  Field sum_x() const { return dx_; }

  // One block's path through a round.
  class Walk {
   public:
    Walk(const CentralPath& path, const Block& block, Message message);
    void begin(int k);  // local step k: copies stand where the steps before it led
    bool moved() const { return k_ > 0; }  // the copies may differ from the centre
    In x() const { return moved() ? In(x_) : block_.centre[path_.x_]; }
    In theta() const { return moved() ? In(theta_) : block_.centre[path_.theta_]; }
    // One sample's directions, an equal part of local step k.
    void move_x(In g);
    void move_theta(In g);
    void end();  // adds displacements to the sum, where they were collected

   private:
    void move(Field sum, Out by, double alpha, In g);

    const CentralPath& path_;
    const Block& block_;
    Message message_;
    bool several_;
    int k_ = 0;
    double alpha_x_ = 0, alpha_theta_ = 0;
    Out dx_, dtheta_, x_, theta_;
  };

 private:
  Field x_, theta_;    // centre
  Field dx_, dtheta_;  // sum
};

}  // namespace affpcl
